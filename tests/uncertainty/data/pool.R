# Makes pool.json, what R's mice says about fixed estimates and about imputations of its own.
# Rscript tests/uncertainty/data/pool.R tests/uncertainty/data/pool.json
suppressPackageStartupMessages(library(mice))
library(jsonlite)

figures <- function(fits, dfcom) {
  pooled <- pool(fits, dfcom = dfcom)
  summed <- summary(pooled, conf.int = TRUE)
  list(
    estimates = t(sapply(fits, function(fit) unname(coef(fit)))),
    variances = t(sapply(fits, function(fit) unname(diag(vcov(fit))))),
    df_complete = if (is.infinite(dfcom)) "infinite" else dfcom,
    term = as.character(pooled$pooled$term), estimate = pooled$pooled$estimate,
    within = pooled$pooled$ubar, between = pooled$pooled$b, total = pooled$pooled$t,
    df = pooled$pooled$df, increase = pooled$pooled$riv, missing_share = pooled$pooled$lambda,
    missing_information = pooled$pooled$fmi, p_value = summed$p.value,
    low = summed[, "2.5 %"], high = summed[, "97.5 %"]
  )
}

imputed <- mice(nhanes2, m = 5, printFlag = FALSE, seed = 1)
tables <- lapply(seq_len(5), function(k) complete(imputed, k))
linear <- lapply(tables, function(table) lm(chl ~ age + bmi, data = table))
few <- lapply(tables[1:2], function(table) lm(bmi ~ chl, data = table))
logistic <- lapply(tables, function(table) glm(hyp ~ bmi, family = binomial, data = table))
cases <- list(
  linear = figures(linear, df.residual(linear[[1]])),
  two_imputations = figures(few, df.residual(few[[1]])),
  logistic = figures(logistic, df.residual(logistic[[1]])),
  large = figures(linear, 999999)
)
write_json(cases, commandArgs(trailingOnly = TRUE)[1], digits = NA, auto_unbox = TRUE, pretty = TRUE)
