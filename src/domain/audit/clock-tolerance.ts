// How far clocks may be apart before times are held against the record: whoever is behind by this much lies to nobody.

/** Within one job: a process tells its times, and its clock may be set right in between, or another process closes it. */
export const JOB_SLACK_MS = 60_000;

/** Between checkpoints: the processes that take turns in signing have clocks of their own. */
export const CHECKPOINT_SLACK_MS = 600_000;
