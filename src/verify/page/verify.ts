// The page where anyone verifies a receipt: what is pasted or chosen is checked in the page and never sent.

import { parsedJson } from '../../domain/canonical-json.ts';
import {
  allChecksHold,
  noProofIn,
  type ReceiptReport,
  readReceiptDocument,
} from '../../domain/receipt/document.ts';
import { CHECK_LABELS, type CheckRow, checkRow, countText, outcomeText } from '../../domain/receipt/texts.ts';
import { fromJwkSet } from '../../domain/signing-keys/keys.ts';
import { cosignersText } from '../../domain/transparency/cosignature.ts';
import { parseTlogProof } from '../../domain/transparency/tlog-proof.ts';
import { UnusableInput } from '../given.ts';
import { type VerifyOptions, verifyReceipt } from '../verifier.ts';
import { checkTable, pill } from './check-table.ts';
import { code, element, part } from './dom.ts';
import { fetchedKeys, uncheckedReason } from './fetching.ts';
import { differenceList, disclosures, notOpened, redactions, statement } from './receipt-view.ts';

export function offerVerification(form: HTMLFormElement): void {
  for (const id of ['receipt', 'keys', 'proof', 'policy', 'disclosures']) takeFiles(id);
  const chosen = part('own-keys', HTMLElement);
  const own = part('keys-own', HTMLInputElement);
  const follow = () => {
    chosen.hidden = !own.checked;
  };
  form.addEventListener('change', follow);
  follow();
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void verifyGiven(form, own.checked);
  });
  part('no-script', HTMLElement).hidden = true;
  form.hidden = false;
}

/** Fills the field of this id with the text of a file that is chosen, or dropped on the button. */
function takeFiles(id: string): void {
  const input = part(`${id}-file`, HTMLInputElement);
  input.addEventListener('change', async () => {
    const [file] = input.files ?? [];
    if (file === undefined) return;
    part(id, HTMLTextAreaElement).value = await file.text();
    say(`${file.name} is read; it stays on this page.`);
  });
}

const say = (...parts: readonly (Node | string)[]) => part('state', HTMLElement).replaceChildren(...parts);
const textOf = (id: string) => part(id, HTMLTextAreaElement).value.trim();

async function verifyGiven(form: HTMLFormElement, ownKeys: boolean): Promise<void> {
  const field = part('receipt', HTMLTextAreaElement);
  const result = part('result', HTMLElement);
  result.hidden = true;
  const receipt = field.value.trim();
  field.setAttribute('aria-invalid', String(receipt === ''));
  if (receipt === '') {
    say(pill('unchecked'), ' There is no receipt yet: paste one, or choose a file.');
    field.focus();
    return;
  }
  say(pill('running'), ' Your browser checks the receipt.');
  try {
    const keys = ownKeys ? textOf('keys') : await fetchedKeys(form.dataset.keys ?? '');
    const report = await verifyReceipt(receipt, { keys, ...extras(receipt) });
    say(pill(report.ok ? 'verified' : 'failed'), ` ${verdictText(report)}`);
    part('findings', HTMLElement).replaceChildren(...shown(report, keys));
    result.hidden = false;
    part('result-title', HTMLElement).focus();
  } catch (error) {
    say(pill('unchecked'), ` It could not be checked. ${uncheckedReason(error)}`);
  }
}

/** An execution response opens its own commitments, unless others are given. */
function extras(receipt: string): Pick<VerifyOptions, 'proof' | 'policy' | 'disclosures'> {
  const [proof, policy, given] = [textOf('proof'), textOf('policy'), textOf('disclosures')];
  const document = readReceiptDocument(receipt);
  const own = document.kind === 'execution' && 'disclosures' in document.text;
  // What was copied from a page may have lost its last line's end, without which it is no signed note.
  const noProof = proof === '' ? null : noProofIn(`${proof}\n`);
  // An error answer that was saved as a proof is no evidence against the receipt.
  if (noProof !== null) throw new UnusableInput(`The proof that was given ${noProof}.`);
  if (policy !== '' && proof === '')
    throw new UnusableInput('A witness policy needs a proof of inclusion: the cosignatures are in it.');
  return {
    ...(proof === '' ? {} : { proof: `${proof}\n` }),
    ...(policy === '' ? {} : { policy }),
    ...(given !== '' ? { disclosures: given } : own ? { disclosures: document.text } : {}),
  };
}

const verdictText = (report: ReceiptReport): string =>
  report.ok
    ? `The receipt is genuine: ${countText(rowsOf(report).map(({ state }) => state))}. ${report.payload === null ? '' : outcomeText(report.payload)}`
    : (report.problem ?? 'At least one check does not hold: do not rely on this receipt.');

/** Without a proof, that the log contains the receipt is not checked. */
function rowsOf({ checks }: ReceiptReport): readonly CheckRow[] {
  const rows = checks.map((check) => withCosigners(checkRow(check, 'verified')));
  return textOf('proof') === '' ? [...rows, NO_PROOF] : rows;
}

const NO_PROOF: CheckRow = {
  state: 'unchecked',
  label: CHECK_LABELS.receipt_logged,
  name: 'receipt_logged',
  more: 'No proof was given.',
};

/** To a proof that holds, without a policy: who has cosigned its checkpoint, and when, as it states. */
function withCosigners(row: CheckRow): CheckRow {
  const proof = parseTlogProof(`${textOf('proof')}\n`);
  if (row.name !== 'receipt_logged' || row.state !== 'verified' || proof === null || textOf('policy') !== '')
    return row;
  return { ...row, more: `${row.more ?? ''} ${cosignersText(proof.checkpoint)}` };
}

function shown(report: ReceiptReport, keys: string): readonly Node[] {
  const { payload, keyId, differences, opened } = report;
  const trusted = allChecksHold(report);
  const parts: Node[] = [checkTable(rowsOf(report))];
  const section = (title: string, ...more: readonly Node[]) => parts.push(element('h3', {}, title), ...more);
  if (keyId !== null && !holds(keys, keyId))
    parts.push(
      element('p', {}, 'The key set does not contain the key that the receipt names: ', code(keyId)),
    );
  if (differences.length > 0)
    section('The text around the signed receipt differs from it', differenceList(differences));
  if (opened !== null && !trusted) section('Disclosures', notOpened());
  else if (opened !== null && opened.length > 0) section('Disclosures', disclosures(opened));
  // Readers would take unsigned text beside a failure for facts.
  if (payload !== null && trusted) {
    section('What was signed', statement(payload));
    section('What was redacted', redactions(payload, opened?.filter(({ ok }) => ok).length));
  }
  return parts;
}

function holds(keys: string, keyId: string): boolean {
  return (fromJwkSet(parsedJson(keys)) ?? []).some((key) => key.keyId === keyId);
}
