// Disclosures as the payer hands them over, and as they are shown opened.
import type { DisclosureProblem, OpenedDisclosure } from '../domain/receipt/open-disclosures.ts';
import { CannotRun } from './exit.ts';
import { mark, paint, shown } from './terminal.ts';

/** `value`: a JSON array of disclosures, or an execution response that has them. Throws `CannotRun` for anything else. */
export function readDisclosures(value: unknown, name: string): readonly string[] {
  const list = Array.isArray(value) ? value : memberOf(value);
  if (Array.isArray(list) && list.every((text) => typeof text === 'string')) return list;
  throw new CannotRun(
    `${name} holds no disclosures: it must be a JSON array of them, or an execution response with its \`disclosures\``,
  );
}

const memberOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'disclosures' in value ? value.disclosures : null;

const PROBLEMS: Readonly<Record<DisclosureProblem, string>> = {
  malformed: 'is no disclosure',
  not_committed: 'is not what this receipt commits to: a changed value, or of another receipt',
  misplaced: 'stands at another place of the receipt',
  repeated: 'is given twice',
};

/** `signed`: the receipt verifies; else no value is shown, since nothing vouches for it. */
export function disclosureLines(opened: readonly OpenedDisclosure[], signed: boolean): readonly string[] {
  if (opened.length === 0) return ['No disclosures to open.'];
  const lines = opened.map((one) => {
    if (!one.ok) return `  ${mark(false)} ${shown(one.name ?? 'a text')} ${PROBLEMS[one.problem]}`;
    const value = signed ? shown(one.value) : paint('dim', '(not shown: the receipt does not verify)');
    return `  ${mark(true)} ${shown(one.name)}: ${value}`;
  });
  return ['Disclosed, and committed to by the receipt:', ...lines];
}
