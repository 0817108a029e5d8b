// A purchase on disk, written before its payment is sent: whoever paid can come back for what was bought, also after a
// crash. The payment in it is signed for one payee and amount; the file is its owner's alone all the same.
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { resolve } from 'node:path';
import type { PaymentHeader, Terms } from '#src/app/buyer.ts';
import { CannotRun, systemCode } from './exit.ts';

const FORMAT = 'relay-purchase/1';

export type Purchase = { readonly payment: PaymentHeader; readonly terms: Terms };
type Saved = Purchase & {
  readonly format: typeof FORMAT;
  readonly url: string;
  readonly requestSha256: string;
};

/** null: nothing was saved there. Throws `CannotRun` for another purchase, or something else altogether. */
export function readPurchase(file: string, url: string, body: string): Purchase | null {
  if (!existsSync(file)) return null;
  const saved = parsed(file);
  if (saved === null) throw new CannotRun(`${file} is not a purchase that --save has written`);
  if (saved.url !== url || saved.requestSha256 !== sha256(body))
    throw new CannotRun(`${file} holds the purchase of another call: repeat that one, or name another file`);
  return { payment: saved.payment, terms: saved.terms };
}

function parsed(file: string): Saved | null {
  try {
    const value = JSON.parse(readFileSync(file, 'utf8'));
    return value?.format === FORMAT && typeof value.payment?.value === 'string' ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw new CannotRun(`${file} cannot be read (${systemCode(error) ?? 'unknown'})`, { cause: error });
  }
}

/** Whole and on the disk when it returns; a file that came there meanwhile is left as it is. Throws `CannotRun`. */
export function savePurchase(file: string, url: string, body: string, purchase: Purchase): void {
  const saved: Saved = { format: FORMAT, url, requestSha256: sha256(body), ...purchase };
  const beside = `${resolve(file)}.${process.pid}.part`;
  try {
    const descriptor = openSync(beside, 'wx', 0o600);
    try {
      writeSync(descriptor, `${JSON.stringify(saved, null, 2)}\n`);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    try {
      linkSync(beside, file);
    } finally {
      unlinkSync(beside);
    }
  } catch (error) {
    const problem = `${file} cannot be written (${systemCode(error) ?? 'unknown'}): nothing was paid`;
    throw new CannotRun(problem, { cause: error });
  }
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
