// The key file of a witness: an Ed25519 and an ML-DSA-44 key, as JSON Web Keys, and the name that its cosignatures have.
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { fromBase64url } from '#src/domain/encoding.ts';
import { SIGNATURE_TYPES } from '#src/domain/transparency/cosignature.ts';
import type { CosignerSigner } from '#src/ports/signer.ts';
import { createOwnersFile, KeyFileError, readOwnersFile } from './owners-file.ts';

/** C2SP signed-note: not empty, without a blank or a plus. ML-DSA-44 signs at most 255 bytes of it. */
export const WITNESS_NAME = /^[^\s+]{1,200}$/u;

const Base64url = Type.String({ pattern: '^[A-Za-z0-9_-]+$' });
/** RFC 8037. */
const Ed25519Jwk = Type.Object({
  kty: Type.Literal('OKP'),
  crv: Type.Literal('Ed25519'),
  x: Base64url,
  d: Base64url,
});
/** `priv`: the 32-byte seed. */
const MlDsa44Jwk = Type.Object({
  kty: Type.Literal('AKP'),
  alg: Type.Literal('ML-DSA-44'),
  pub: Base64url,
  priv: Base64url,
});
const WitnessKeyFile = Type.Object({
  name: Type.String(),
  keys: Type.Array(Type.Union([Ed25519Jwk, MlDsa44Jwk]), { minItems: 1, maxItems: 2 }),
});
type WitnessJwk = Static<typeof Ed25519Jwk> | Static<typeof MlDsa44Jwk>;

/** `signers`: in the order of the file. */
export type WitnessKeys = { readonly name: string; readonly signers: readonly CosignerSigner[] };

/** Fresh keys. `save` creates their file, mode 0600; throws `KeyFileError`, `key_file_exists` if it is there. */
export async function freshWitnessKeys(
  name: string,
): Promise<{ readonly keys: WitnessKeys; save(path: string): void }> {
  const jwks = [await freshJwk('Ed25519'), await freshJwk('ML-DSA-44')];
  const signers = await Promise.all(jwks.map((jwk) => signerOf(jwk, name)));
  return {
    keys: { name, signers: signers.filter((signer) => signer !== null) },
    save: (path) => createOwnersFile(path, `${JSON.stringify({ name, keys: jwks }, null, 2)}\n`),
  };
}

/** Throws `KeyFileError`, also if group or others may read the file. */
export async function readWitnessKeys(path: string): Promise<WitnessKeys> {
  const { text } = readOwnersFile(path, 'put it back from its backup');
  const json = parsedJson(text);
  if (!Value.Check(WitnessKeyFile, json) || !WITNESS_NAME.test(json.name))
    throw new KeyFileError('key_file_malformed', path, 'is no key file of a witness');
  const { name, keys } = json;
  const signers: CosignerSigner[] = [];
  for (const [index, jwk] of keys.entries()) {
    const signer = await signerOf(jwk, name);
    if (signer === null)
      throw new KeyFileError(
        'key_file_malformed',
        path,
        `has a key that cannot sign: look at "/keys/${index}"`,
      );
    signers.push(signer);
  }
  return { name, signers };
}

type Algorithm = 'Ed25519' | 'ML-DSA-44';

async function freshJwk(algorithm: Algorithm): Promise<WitnessJwk> {
  const pair = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  if (!('privateKey' in pair)) throw new Error(`the runtime makes no key pair for ${algorithm}`);
  const jwk = Value.Clean(
    Type.Union([Ed25519Jwk, MlDsa44Jwk]),
    await crypto.subtle.exportKey('jwk', pair.privateKey),
  );
  if (!Value.Check(Type.Union([Ed25519Jwk, MlDsa44Jwk]), jwk))
    throw new Error(`the runtime exports no JWK of ${algorithm}`);
  return jwk;
}

/** null: the parts of the key do not belong together. */
async function signerOf(jwk: WitnessJwk, name: string): Promise<CosignerSigner | null> {
  const algorithm: Algorithm = jwk.kty === 'OKP' ? 'Ed25519' : 'ML-DSA-44';
  const publicKey = fromBase64url(jwk.kty === 'OKP' ? jwk.x : jwk.pub);
  if (publicKey === null) return null;
  const { cosignatureEd25519, cosignatureMlDsa44 } = SIGNATURE_TYPES;
  const key = { name, publicKey, type: jwk.kty === 'OKP' ? cosignatureEd25519 : cosignatureMlDsa44 };
  try {
    const [privateKey, own] = [
      await crypto.subtle.importKey('jwk', jwk, algorithm, false, ['sign']),
      await crypto.subtle.importKey('jwk', publicOf(jwk), algorithm, false, ['verify']),
    ];
    const sign = async (message: Uint8Array) =>
      new Uint8Array(await crypto.subtle.sign(algorithm, privateKey, Uint8Array.from(message)));
    const probe = new Uint8Array(32);
    const signature = Uint8Array.from(await sign(probe));
    return (await crypto.subtle.verify(algorithm, own, signature, probe)) ? { key, sign } : null;
  } catch (error) {
    if (error instanceof Error && error.name === 'DataError') return null;
    throw error;
  }
}

const publicOf = (jwk: WitnessJwk) =>
  jwk.kty === 'OKP' ? { kty: jwk.kty, crv: jwk.crv, x: jwk.x } : { kty: jwk.kty, alg: jwk.alg, pub: jwk.pub };
