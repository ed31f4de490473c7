"""The command line: reads files, calls down, shows progress, results and errors."""
