// HTTP message signatures (RFC 9421) of this relay as a signature agent: of each outbound request, and of the directory with the
// keys that verify them (draft-ietf-webbotauth-httpsig-protocol). Bot filters admit agents that they can verify.
import { sha256, toBase64, utf8 } from '#src/domain/encoding.ts';

type HeaderPair = readonly [name: string, value: string];

/** `keyId`: RFC 7638 thumbprint. `sign`: Ed25519. */
export type MessageKey = {
  readonly keyId: string;
  readonly sign: (message: Uint8Array) => Promise<Uint8Array>;
};

/** `component`: identifier as in Signature-Input, quoted and with its parameters. `value`: as in the signature base. */
type Component = readonly [component: string, value: string];

export type SignatureFacts = {
  /** Unix seconds. */
  readonly created: number;
  readonly expires: number;
  /** Base64 of 64 random bytes. */
  readonly nonce: string;
  readonly tag: string;
};

/** Values of Signature-Input and Signature without their label (RFC 9421 §2.5 and §4). */
export async function messageSignature(
  components: readonly Component[],
  { created, expires, nonce, tag }: SignatureFacts,
  { keyId, sign }: MessageKey,
): Promise<{ readonly input: string; readonly signature: string }> {
  const list = components.map(([component]) => component).join(' ');
  const input = `(${list});created=${created};expires=${expires};keyid="${keyId}";alg="ed25519";nonce="${nonce}";tag="${tag}"`;
  const lines = [...components, ['"@signature-params"', input]].map(([name, value]) => `${name}: ${value}`);
  return { input, signature: `:${toBase64(await sign(utf8(lines.join('\n'))))}:` };
}

/** At most 120 s: long enough for clocks that differ, too short for a use elsewhere. */
const REQUEST_SECONDS = 120;

export type SignedRequest = {
  readonly method: string;
  /** As in the Host header. */
  readonly authority: string;
  /** Path and query as sent. */
  readonly path: string;
  /** Exact bytes; null: no body. */
  readonly body: Uint8Array | null;
  /** PUBLIC_BASE_URL, whose directory has the key. */
  readonly agent: string;
  /** Unix seconds. */
  readonly created: number;
  readonly nonce: string;
};

const OWN_HEADERS = ['signature', 'signature-input', 'signature-agent'];

/**
 * The headers of the signature. Empty if `given`, the headers that are sent otherwise (names in lower case), has a signature
 * or an agent of the caller's own. A content digest that the caller gives is signed as it is.
 */
export async function requestSignature(
  given: readonly HeaderPair[],
  request: SignedRequest,
  key: MessageKey,
): Promise<readonly HeaderPair[]> {
  if (given.some(([name]) => OWN_HEADERS.includes(name))) return [];
  const { method, authority, path, body, agent, created, nonce } = request;
  const stated = given.find(([name]) => name === 'content-digest')?.[1].trim();
  const digest = stated ?? (body === null ? null : `sha-256=:${toBase64(sha256(body))}:`);
  const [pathOnly = ''] = path.split('?');
  const components: Component[] = [
    ['"@authority"', authority],
    ['"@method"', method],
    ['"@path"', pathOnly],
    ...(digest === null ? [] : [['"content-digest"', digest] as const]),
    [`"signature-agent";key="${LABEL}"`, `"${agent}"`],
  ];
  const facts = { created, expires: created + REQUEST_SECONDS, nonce, tag: 'web-bot-auth' };
  const { input, signature } = await messageSignature(components, facts, key);
  return [
    ...(digest === null || stated !== undefined ? [] : [['content-digest', digest] as const]),
    ['signature-agent', `${LABEL}="${agent}"`],
    ['signature-input', `${LABEL}=${input}`],
    ['signature', `${LABEL}=${signature}`],
  ];
}

const LABEL = 'sig1';

export const DIRECTORY_TYPE = 'application/http-message-signatures-directory+json';

/** Each key signs that this host publishes it; longer than caches keep the answer. */
const DIRECTORY_SECONDS = 300;

/** The headers that sign the directory of these keys. `authority`: host and port of PUBLIC_BASE_URL. */
export async function directorySignatures(
  keys: readonly MessageKey[],
  facts: { readonly authority: string; readonly created: number; readonly nonce: string },
): Promise<Readonly<Record<string, string>>> {
  const { authority, created, nonce } = facts;
  const stated = {
    created,
    expires: created + DIRECTORY_SECONDS,
    nonce,
    tag: 'http-message-signatures-directory',
  };
  const signed = await Promise.all(
    keys.map((key) => messageSignature([['"@authority";req', authority]], stated, key)),
  );
  if (signed.length === 0) return {};
  const labelled = (text: (one: (typeof signed)[number]) => string) =>
    signed.map((one, at) => `sig${at + 1}=${text(one)}`).join(', ');
  return {
    'signature-input': labelled(({ input }) => input),
    signature: labelled(({ signature }) => signature),
  };
}
