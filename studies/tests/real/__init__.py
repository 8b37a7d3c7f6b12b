"""Gates on the published files of real people; collected only if FIDM_DATA names their folder."""
