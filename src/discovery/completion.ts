// When a buyer may call an action done, and what only looks like it: one sentence for all documents and snippets.

/** Specification, Authentication, 4. Goes after `done only when`, `only when` and the like. */
export const DONE_WHEN =
  'the paid answer is a success (200, job.status succeeded) and the verification report has ok true, ' +
  'signatureVerified true and every check ok true';

/** The report is of the receipt: a failed job has a genuine one, too. */
export const FAILED_VERIFIES = 'The receipt of a failed job (502) verifies as well, and is not done.';
