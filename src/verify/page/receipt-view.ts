// Shows a verified receipt: its statement, the number of redacted values, and the opened disclosures.

import type { OpenedDisclosure } from '../../domain/receipt/disclosures.ts';
import type { Difference } from '../../domain/receipt/document.ts';
import { logOf, type ReceiptPayload } from '../../domain/receipt/payload.ts';
import { DISCLOSURE_PROBLEMS, NOT_OPENED, statementOf } from '../../domain/receipt/texts.ts';
import { code, element, factList } from './dom.ts';

/** For a receipt whose signature verifies only: readers would take unsigned text beside a failure for facts. */
export function statement(payload: ReceiptPayload): HTMLElement {
  const { jobId, iat, request, attempts, outcome } = payload;
  const { answer, payment } = statementOf(payload);
  return factList([
    ['Job', code(jobId)],
    ['Issued', new Date(iat * 1000).toISOString()],
    ['Call', `${request.method}, ${outcome.status}, ${answer}`],
    ['Attempts', String(attempts.length)],
    ['Payment', payment],
    ['Transparency log', logOf(payload)?.origin ?? 'none named'],
  ]);
}

/** `opened`: the number of opened disclosures. */
export function redactions({ request, outcome, attempts }: ReceiptPayload, opened = 0): HTMLElement {
  const ofAttempts = attempts.reduce((sum, { _sd }) => sum + _sd.length, 0);
  const key = request._sd.length > 4 ? ', idempotency key' : '';
  const rows = [
    [request._sd.length, `of the request: target URL and origin, header names, hash of the body${key}`],
    [ofAttempts, "of the attempts: the target's address, hash of its certificate"],
    [outcome._sd.length, 'of the response: hash of its body'],
  ] as const;
  const all = request._sd.length + ofAttempts + outcome._sd.length;
  return element(
    'div',
    {},
    element(
      'p',
      {},
      `${all} values are redacted: the receipt contains a salted hash of each, which reveals nothing. Only its payer can disclose them; ${opened === 0 ? 'none is opened here' : `${opened} are opened here`}.`,
    ),
    element(
      'ul',
      {},
      ...rows.flatMap(([count, what]) => (count === 0 ? [] : [element('li', {}, `${count} ${what}`)])),
    ),
  );
}

export function disclosures(opened: readonly OpenedDisclosure[]): HTMLElement {
  return factList(
    opened.map((one) => {
      if (!one.ok) return [one.name ?? 'A text', problem(DISCLOSURE_PROBLEMS[one.problem])];
      return [one.name, code(typeof one.value === 'string' ? one.value : one.value.join(', '))];
    }),
    'facts long',
  );
}

export const notOpened = () => element('p', {}, NOT_OPENED);

const problem = (words: string) => element('span', { class: 'failed' }, `refused: it ${words}`);

/** Members beside the signed receipt that differ from it. */
export function differenceTable(differences: readonly Difference[]): HTMLElement {
  const cells = (name: 'th' | 'td', texts: readonly string[]) =>
    element('tr', {}, ...texts.map((text) => element(name, name === 'th' ? { scope: 'col' } : {}, text)));
  const rows = differences.map(({ field, shown, signed }) =>
    cells('td', [field, written(shown), written(signed)]),
  );
  return element(
    'table',
    {},
    element('thead', {}, cells('th', ['Field', 'Text', 'Signed'])),
    element('tbody', {}, ...rows),
  );
}

function written(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing');
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
