"""Methods that the paper compares with, each in a file of its own with its equation and source.

What scikit-learn or another library that is looked after has is used from there.
"""
