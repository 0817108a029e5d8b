// Shows a verified receipt: its statement, the number of redacted values, and the opened disclosures.

import { iso } from '#src/lib/iso.ts';
import type { OpenedDisclosure } from '../../domain/receipt/disclosures.ts';
import { logOf, type ReceiptPayload } from '../../domain/receipt/payload.ts';
import { DISCLOSURE_PROBLEMS, NOT_OPENED, runText, statementOf } from '../../domain/receipt/texts.ts';
import { code, element, factList } from './dom.ts';

/** For a receipt whose signature verifies only: readers would take unsigned text beside a failure for facts. */
export function statement(payload: ReceiptPayload): HTMLElement {
  const { jobId, iat, request, attempts, outcome } = payload;
  const { answer, payment } = statementOf(payload);
  const run = runText(payload);
  return factList([
    ['Job', code(jobId)],
    ['Issued', iso(iat * 1000)],
    ['Call', `${request.method}, ${outcome.status}, ${answer}`],
    ['Attempts', String(attempts.length)],
    ['Payment', payment],
    ...(run === null ? [] : ([['Schedule', run]] as const)),
    ['Transparency log', logOf(payload)?.origin ?? 'none named'],
  ]);
}

/** `opened`: the number of opened disclosures. */
export function redactions({ request, outcome, attempts }: ReceiptPayload, opened = 0): HTMLElement {
  const all = [request, outcome, ...attempts].reduce((sum, { _sd }) => sum + _sd.length, 0);
  return element(
    'p',
    {},
    `${all} values are redacted (target URL, header names, bodies, addresses): the receipt contains a salted hash of each, which reveals nothing. Only its payer can disclose them; ${opened} are opened here.`,
  );
}

export function disclosures(opened: readonly OpenedDisclosure[]): HTMLElement {
  return factList(
    opened.map((disclosure) => {
      if (!disclosure.ok)
        return [disclosure.name ?? 'A text', problem(DISCLOSURE_PROBLEMS[disclosure.problem])];
      return [
        disclosure.name,
        code(typeof disclosure.value === 'string' ? disclosure.value : disclosure.value.join(', ')),
      ];
    }),
  );
}

export const notOpened = () => element('p', {}, NOT_OPENED);

const problem = (words: string) => element('span', { class: 'failed' }, `refused: it ${words}`);

export const differenceList = (differences: readonly string[]): HTMLElement =>
  element('p', {}, 'Members that differ from what was signed: ', code(differences.join(', ')));
