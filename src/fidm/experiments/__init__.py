"""The paper's experiments on any study: recovery, matched pairs, task settings, reliability, families."""
