// Disclosures as the payer hands them over, and as they are shown opened.
import { DISCLOSURE_WORDS, NOT_OPENED } from '#src/domain/receipt/check-labels.ts';
import { disclosuresOf } from '#src/domain/receipt/document.ts';
import type { OpenedDisclosure } from '#src/domain/receipt/open-disclosures.ts';
import { CannotRun } from './exit.ts';
import { mark, shown } from './terminal.ts';

/** `value`: a JSON array of disclosures, or an execution response that has them. Throws `CannotRun` for anything else. */
export function readDisclosures(value: unknown, name: string): readonly string[] {
  const list = disclosuresOf(value);
  if (list !== null) return list;
  throw new CannotRun(
    `${name} holds no disclosures: it must be a JSON array of them, or an execution response with its \`disclosures\``,
  );
}

/** `vouched`: the receipt verifies; else none was opened, since what it commits to is no fact. */
export function disclosureLines(opened: readonly OpenedDisclosure[], vouched: boolean): readonly string[] {
  if (!vouched) return [NOT_OPENED];
  if (opened.length === 0) return ['No disclosures to open.'];
  const lines = opened.map((one) => {
    if (!one.ok) return `  ${mark(false)} ${shown(one.name ?? 'a text')} ${DISCLOSURE_WORDS[one.problem]}`;
    return `  ${mark(true)} ${shown(one.name)}: ${shown(one.value)}`;
  });
  const all = opened.every(({ ok }) => ok);
  return [
    all ? 'Disclosed, and committed to by the receipt:' : 'Disclosed (✓: the receipt commits to it):',
    ...lines,
  ];
}
