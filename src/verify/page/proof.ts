// On a proof page: the reader's browser fetches receipt, keys and proof from the relay, and checks them itself. What the server wrote on the page does not change.

import { parsedJson } from '../../domain/canonical-json.ts';
import { allChecksHold, type ReceiptReport } from '../../domain/receipt/document.ts';
import { CHECK_LABELS } from '../../domain/receipt/texts.ts';
import { fromJwkSet } from '../../domain/signing-keys/keys.ts';
import { verifyReceipt } from '../verifier.ts';
import { checkTable, overall, pill, type Row, rowOf } from './check-table.ts';
import { element, part } from './dom.ts';
import { fetched, fetchedKeys, reasonOf, Unreachable } from './fetching.ts';
import { differenceList, redactions, statement } from './receipt-view.ts';

export async function checkProofPage(section: HTMLElement): Promise<void> {
  const [state, findings] = [part('own-state', HTMLElement), part('own-findings', HTMLElement)];
  state.replaceChildren(pill('running'), ' Your browser fetches the receipt and the keys, and checks them.');
  try {
    const found = await examine(section.dataset);
    const verdict = found.report.differences.length > 0 ? 'failed' : overall(found.rows);
    state.replaceChildren(pill(verdict), ` ${VERDICTS[verdict]}`);
    findings.replaceChildren(...shown(found));
  } catch (error) {
    state.replaceChildren(pill('unchecked'), ` Your browser could not check it. ${reasonOf(error)}`);
    const again = element('button', { type: 'button' }, 'Try again');
    again.addEventListener('click', () => void checkProofPage(section));
    findings.replaceChildren(element('p', {}, again));
  }
}

const VERDICTS = {
  verified: 'Your browser has verified it: every check below holds.',
  failed: 'At least one check does not hold: do not rely on this receipt.',
  unchecked: 'The checks that could be made hold; one could not be made.',
} as const;

type Found = { readonly report: ReceiptReport; readonly rows: readonly Row[] };

/** `dataset`: the id of the receipt, and paths of the relay without a host. */
async function examine(dataset: DOMStringMap): Promise<Found> {
  const { receiptId = '', receipt = '', keys: keysPath = '', proof: proofPath = '' } = dataset;
  const [answer, keys] = await Promise.all([fetched(receipt), fetchedKeys(keysPath)]);
  if (answer === null) throw new Unreachable('The relay does not have this receipt any more.');
  const alone = await verifyReceipt(answer, { keys, receiptId });
  const rows = alone.checks.map(rowOf);
  // Fetched only if the relay states that the log contains it: a 409 would be an error in the browser's console.
  const logged = checkpointIn(answer);
  if (!logged && alone.payload?.v !== 2 && !keepsLog(keys)) return { report: alone, rows };
  let proof: string | null;
  try {
    proof = logged ? await fetched(proofPath) : null;
  } catch (error) {
    return { report: alone, rows: [...rows, unasked(reasonOf(error))] };
  }
  const report = await verifyReceipt(answer, { keys, receiptId, proof });
  return { report, rows: report.checks.map(rowOf) };
}

/** Whether the answer states that a checkpoint covers the receipt. */
function checkpointIn(answer: string): boolean {
  const value = parsedJson(answer);
  return (
    typeof value === 'object' &&
    value !== null &&
    'checkpoint' in value &&
    typeof value.checkpoint === 'string'
  );
}

/** A relay with a checkpoint key logs every receipt, also one that does not name the log. */
const keepsLog = (keys: string): boolean =>
  (fromJwkSet(parsedJson(keys)) ?? []).some(({ purpose }) => purpose === 'checkpoint');

const unasked = (more: string): Row => ({
  state: 'unchecked',
  words: CHECK_LABELS.receipt_logged,
  name: 'receipt_logged',
  more,
});

function shown({ report, rows }: Found): readonly Node[] {
  const { payload, differences } = report;
  const parts: Node[] = [checkTable(rows)];
  if (differences.length > 0)
    parts.push(
      element('h3', {}, 'The text around the signed receipt differs from it'),
      differenceList(differences),
    );
  if (payload !== null && allChecksHold(report))
    parts.push(
      element('h3', {}, 'What was signed'),
      statement(payload),
      element('h3', {}, 'What was redacted'),
      redactions(payload),
    );
  return parts;
}
