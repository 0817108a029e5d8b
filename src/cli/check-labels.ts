// The verifier's checks on the terminal.
import { CHECK_WORDS } from '#src/domain/receipt/check-labels.ts';
import type { Check, VerificationReport } from '#src/domain/receipt/verify.ts';
import { mark, paint, plain, shown } from './terminal.ts';

/** A line a check, and below each that fails the two values that were compared. */
export function checkLines(report: VerificationReport): readonly string[] {
  return report.checks.flatMap((check) => [
    `  ${mark(check.ok)} ${CHECK_WORDS[check.name]} ${paint('dim', `(${check.name})`)}`,
    ...(check.ok ? [] : comparedLines(check)),
  ]);
}

function comparedLines({ details }: Check): readonly string[] {
  if (details === undefined || details === null || typeof details !== 'object') return [];
  return Object.entries(details).map(([name, value]) => `      ${plain(name)}: ${shown(value)}`);
}
