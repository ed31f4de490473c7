# Multiple imputation of the tables in a folder by R's mice, pooled estimates to one file.
# Rscript benchmarks/rubin.R FOLDER linear|logistic IMPUTATIONS
suppressPackageStartupMessages(library(mice))
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
logistic <- arguments[2] == "logistic"
rows <- list()
for (path in sort(Sys.glob(file.path(folder, "*.csv")))) {
  table <- read.csv(path)
  if (logistic) table$y <- factor(table$y)
  number <- as.integer(sub(".csv", "", basename(path)))
  imputed <- mice(table, m = as.integer(arguments[3]), printFlag = FALSE, seed = number)
  fits <- if (logistic) with(imputed, glm(y ~ x1 + x2 + x3, family = binomial)) else
    with(imputed, lm(y ~ x1 + x2 + x3))
  found <- summary(pool(fits), conf.int = TRUE)
  rows[[length(rows) + 1]] <- data.frame(
    number = number, term = found$term, estimate = found$estimate,
    se = found$std.error, low = found[, "2.5 %"], high = found[, "97.5 %"]
  )
}
write.csv(do.call(rbind, rows), file.path(folder, "pooled.txt"), row.names = FALSE)
