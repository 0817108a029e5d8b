import process from 'node:process';

export async function checkResult({ mode, idempotentReplay, job, receipt, links }) {
  console.log(mode, job.status, receipt.id, idempotentReplay ? 'replay' : 'first time');
  // Done only when the paid answer is a success (200, job.status succeeded) and the verification report has ok true, signatureVerified true and every check ok true.
  const report = await (await fetch(links.verifyReceipt)).json();
  const proven = report.ok && report.signatureVerified && report.checks.every(({ ok }) => ok);
  console.log(proven ? 'verified' : 'NOT verified', JSON.stringify(report.checks));
  if (!proven || job.status !== 'succeeded') process.exitCode = 1;
}
