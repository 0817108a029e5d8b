// Fixed keys of the published test vectors, and the form of a vector. Each seed is the hash of a public text: the keys protect nothing.
import { createPrivateKey } from 'node:crypto';
import { ed25519SigningKey, publicX, thumbprint } from '#src/adapters/signing/ed25519.ts';
import { hmacKeyedHash } from '#src/adapters/signing/hash.ts';
import { type JwkSet, type KeyRecord, toJwk } from '#src/domain/signing-keys/keys.ts';
import { PKCS8_HEAD } from '#test/support/witness/c2sp.ts';
import { sha256, type TestKey } from './primitives.ts';

/** The seed is the SHA-256 of this text and the label. */
export const SEED_TEXT = 'relay-vectors/1 ';
export const seedOf = (label: string): Uint8Array => sha256(`${SEED_TEXT}${label}`);

/** The same key for the same label, in every run. */
export function fixedKey(label: string, changes: Partial<KeyRecord> = {}): TestKey {
  const der = Buffer.concat([PKCS8_HEAD, seedOf(label)]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const x = publicX(privateKey);
  const keyId = thumbprint(x);
  const window = { notBefore: 1_767_000_000, notAfter: null, compromisedAt: null };
  return {
    x,
    ...ed25519SigningKey(keyId, privateKey),
    record: { keyId, x, purpose: 'receipt', ...window, ...changes },
  };
}

export const keyedHash = hmacKeyedHash(seedOf('hmac secret'));
export const current = fixedKey('receipt key');
/** Retired after the receipts that it signed. */
export const former = fixedKey('former receipt key', { notAfter: 1_767_400_000 });
export const stranger = fixedKey('key of a stranger');
export const checkpointKey = fixedKey('checkpoint key', { purpose: 'checkpoint' });

/** The key set of a vector; `changes`: to the record of the current key. */
export const keySet = (changes: Partial<KeyRecord> = {}): JwkSet => ({
  keys: [{ ...current.record, ...changes }, former.record, checkpointKey.record].map(toJwk),
});

export type VectorKind =
  | 'receipt'
  | 'disclosures'
  | 'payment'
  | 'inclusion'
  | 'witnessed'
  | 'consistency'
  | 'delivery';

/** `codes`: the checks that fail, all of them and in order. `problem`: the reason that a verifier may add. */
export type Expected =
  | { readonly valid: true; readonly opened?: readonly (readonly [name: string, value: unknown])[] }
  | { readonly valid: false; readonly codes: readonly string[]; readonly problem?: string };

export type Vector<I extends object = object> = {
  readonly kind: VectorKind;
  readonly name: string;
  /** The valid vector that this one differs from in one place; absent: it is valid itself. */
  readonly twinOf?: string;
  readonly why: string;
  readonly input: I;
  readonly expected: Expected;
};

/** `keys`: a JWK set. */
export type KeyedVector = Vector<{ readonly keys: object }>;

export const valid = <I extends object>(
  kind: VectorKind,
  name: string,
  why: string,
  input: I,
): Vector<I> => ({
  kind,
  name,
  why,
  input,
  expected: { valid: true },
});

/** Twins of one valid vector. Their names are that of the vector and their own. */
export function twinsOf<I extends object>(
  { kind, name: twinOf, input }: Vector<I>,
  twins: readonly (readonly [
    name: string,
    why: string,
    change: Partial<I>,
    codes: readonly string[],
    problem?: string,
  ])[],
): Vector<I>[] {
  return twins.map(([name, why, change, codes, problem]) => ({
    kind,
    name: `${twinOf}/${name}`,
    twinOf,
    why,
    input: { ...input, ...change },
    expected: { valid: false, codes, ...(problem === undefined ? {} : { problem }) },
  }));
}
