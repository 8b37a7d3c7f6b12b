"""The local review page: people accept groundings, mend or reject them; all on this machine."""
