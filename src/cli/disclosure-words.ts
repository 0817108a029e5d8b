// Disclosures as the payer hands them over, and as they are shown opened.
import { DISCLOSURE_WORDS } from '../domain/receipt/check-words.ts';
import { disclosuresOf } from '../domain/receipt/document.ts';
import type { OpenedDisclosure } from '../domain/receipt/open-disclosures.ts';
import { CannotRun } from './exit.ts';
import { mark, paint, shown } from './terminal.ts';

/** `value`: a JSON array of disclosures, or an execution response that has them. Throws `CannotRun` for anything else. */
export function readDisclosures(value: unknown, name: string): readonly string[] {
  const list = disclosuresOf(value);
  if (list !== null) return list;
  throw new CannotRun(
    `${name} holds no disclosures: it must be a JSON array of them, or an execution response with its \`disclosures\``,
  );
}

/** `signed`: the receipt verifies; else no value is shown, since nothing vouches for it. */
export function disclosureLines(opened: readonly OpenedDisclosure[], signed: boolean): readonly string[] {
  if (opened.length === 0) return ['No disclosures to open.'];
  const lines = opened.map((one) => {
    if (!one.ok) return `  ${mark(false)} ${shown(one.name ?? 'a text')} ${DISCLOSURE_WORDS[one.problem]}`;
    const value = signed ? shown(one.value) : paint('dim', '(not shown: the receipt does not verify)');
    return `  ${mark(true)} ${shown(one.name)}: ${value}`;
  });
  return ['Disclosed, and committed to by the receipt:', ...lines];
}
