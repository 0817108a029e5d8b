// On a proof page: the reader's browser fetches receipt, keys, proof and checkpoint from the relay, and checks them
// itself. Its results replace the relay's in the table of checks.

import { parsedJson } from '../../domain/canonical-json.ts';
import { toBase64 } from '../../domain/encoding.ts';
import { allChecksHold, type ReceiptReport } from '../../domain/receipt/document.ts';
import type { Check } from '../../domain/receipt/report.ts';
import { CHECK_LABELS, type CheckRow, checkRow, outcomeText } from '../../domain/receipt/texts.ts';
import { fromJwkSet } from '../../domain/signing-keys/keys.ts';
import { verifySignedCheckpoint } from '../../domain/transparency/checkpoint.ts';
import { cosignersText } from '../../domain/transparency/cosignature.ts';
import { webPrimitives } from '../primitives.ts';
import { type ProofReport, verifyProof, verifyReceipt } from '../verifier.ts';
import { overall, pill, showRows, tableCount } from './check-table.ts';
import { element, part } from './dom.ts';
import { fetched, fetchedKeys, Unreachable, uncheckedReason } from './fetching.ts';
import { differenceList, redactions, statement } from './receipt-view.ts';

export async function checkProofPage(section: HTMLElement): Promise<void> {
  const [state, findings] = [part('own-state', HTMLElement), part('own-findings', HTMLElement)];
  state.replaceChildren(pill('running'), ' Your browser fetches the receipt and the keys, and checks them.');
  try {
    const found = await examine(section.dataset);
    const { payload, differences } = found.report;
    const table = part('checks', HTMLTableElement);
    showRows(table, found.rows);
    // A check that only the relay makes, or that it refuses itself, counts too.
    const failed = differences.length > 0 || table.querySelector('.failed') !== null;
    const verdict = failed ? 'failed' : overall(found.rows);
    part('own-count', HTMLElement).textContent = tableCount(table);
    if (verdict !== 'verified') part('own-rows', HTMLDetailsElement).open = true;
    const outcome = verdict === 'failed' || payload === null ? '' : ` ${outcomeText(payload)}`;
    state.replaceChildren(pill(verdict), ` ${VERDICTS[verdict]}${outcome}`);
    findings.replaceChildren(...shown(found.report));
    if (payload !== null && allChecksHold(found.report))
      part('redacted', HTMLElement).replaceChildren(redactions(payload));
  } catch (error) {
    state.replaceChildren(pill('unchecked'), ` Your browser could not check it. ${uncheckedReason(error)}`);
    const again = element('button', { type: 'button' }, 'Try again');
    again.addEventListener('click', () => void checkProofPage(section));
    findings.replaceChildren(element('p', {}, again));
  }
}

const VERDICTS = {
  verified: 'Your browser has verified the receipt: every check that it can make holds.',
  failed: 'At least one check does not hold: do not rely on this receipt.',
  unchecked: 'The checks that could be made hold; one could not be made.',
} as const;

type Found = { readonly report: ReceiptReport; readonly rows: readonly CheckRow[] };

/** `dataset`: the id of the receipt, and paths of the relay without a host. */
async function examine(dataset: DOMStringMap): Promise<Found> {
  const {
    receiptId = '',
    receipt = '',
    keys: keysPath = '',
    proof: proofPath = '',
    checkpoint = '',
  } = dataset;
  const [answer, keys] = await Promise.all([fetched(receipt), fetchedKeys(keysPath)]);
  if (answer === null) throw new Unreachable('The relay does not have this receipt any more.');
  const alone = await verifyReceipt(answer, { keys, receiptId });
  const rows = alone.checks.map(own);
  // Fetched only if the relay states that the log contains it: a 409 would be an error in the browser's console.
  const logged = checkpointIn(answer);
  if (!logged && alone.payload?.v !== 2 && !keepsLog(keys)) return { report: alone, rows };
  let proof: string | null;
  try {
    proof = logged ? await fetched(proofPath) : null;
  } catch (error) {
    return { report: alone, rows: [...rows, unasked(uncheckedReason(error))] };
  }
  const report = await verifyReceipt(answer, { keys, receiptId, proof });
  const more =
    proof === null
      ? []
      : [await newest(checkpoint, keys, await verifyProof(proof, { receipt: answer, keys }))];
  return { report, rows: [...report.checks.map(own), ...more] };
}

const own = (check: Check) => checkRow(check, 'verified');

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

const unasked = (more: string): CheckRow => ({
  state: 'unchecked',
  label: CHECK_LABELS.receipt_logged,
  name: 'receipt_logged',
  more,
});

/**
 * Compares the newest checkpoint with the proof's: it is signed, of the same log, and of the same tree if it is of the same
 * size. It may be a little older, because another process of the relay may have answered.
 */
async function newest(path: string, keys: string, proof: ProofReport): Promise<CheckRow> {
  const label = "The log's newest checkpoint is signed, and does not contradict the proof";
  const row = { label, name: null };
  const failed = (more: string): CheckRow => ({ ...row, state: 'failed', more });
  try {
    const note = await fetched(path);
    const known = fromJwkSet(parsedJson(keys)) ?? [];
    const head = note !== null && (await verifySignedCheckpoint(note, known, webPrimitives));
    if (note === null || !head) return failed('No checkpoint key of the key set has signed it.');
    if (!proof.ok) return failed('The proof does not hold.');
    if (head.origin !== proof.origin) return failed('It is of another log.');
    if (head.size === proof.size && toBase64(head.root) !== proof.root)
      return failed(
        'It is of another tree of the same size: keep both, they prove that this relay published two.',
      );
    const more = `${head.origin} had ${head.size} entries. ${cosignersText(note)}`;
    return { ...row, state: 'verified', more };
  } catch (error) {
    return { ...row, state: 'unchecked', more: uncheckedReason(error) };
  }
}

function shown(report: ReceiptReport): readonly Node[] {
  const { payload, differences } = report;
  const parts: Node[] = [];
  if (differences.length > 0)
    parts.push(
      element('h3', {}, 'The text around the signed receipt differs from it'),
      differenceList(differences),
    );
  if (payload !== null && allChecksHold(report))
    parts.push(element('h3', {}, 'What was signed'), statement(payload));
  return parts;
}
