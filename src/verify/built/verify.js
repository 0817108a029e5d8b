// Made by src/verify/build.ts: not to be edited.
// node_modules/@noble/hashes/esm/utils.js
/*! noble-hashes - MIT License (c) 2022 Paul Miller (paulmillr.com) */
function isBytes(a) {
  return a instanceof Uint8Array || ArrayBuffer.isView(a) && a.constructor.name === "Uint8Array";
}
function abytes(b, ...lengths) {
  if (!isBytes(b))
    throw new Error("Uint8Array expected");
  if (lengths.length > 0 && !lengths.includes(b.length))
    throw new Error("Uint8Array expected of length " + lengths + ", got length=" + b.length);
}
function aexists(instance, checkFinished = true) {
  if (instance.destroyed)
    throw new Error("Hash instance has been destroyed");
  if (checkFinished && instance.finished)
    throw new Error("Hash#digest() has already been called");
}
function aoutput(out, instance) {
  abytes(out);
  const min = instance.outputLen;
  if (out.length < min) {
    throw new Error("digestInto() expects output buffer of length at least " + min);
  }
}
function clean(...arrays) {
  for (let i = 0;i < arrays.length; i++) {
    arrays[i].fill(0);
  }
}
function createView(arr) {
  return new DataView(arr.buffer, arr.byteOffset, arr.byteLength);
}
function rotr(word, shift) {
  return word << 32 - shift | word >>> shift;
}
function utf8ToBytes(str) {
  if (typeof str !== "string")
    throw new Error("string expected");
  return new Uint8Array(new TextEncoder().encode(str));
}
function toBytes(data) {
  if (typeof data === "string")
    data = utf8ToBytes(data);
  abytes(data);
  return data;
}
class Hash {
}
function createHasher(hashCons) {
  const hashC = (msg) => hashCons().update(toBytes(msg)).digest();
  const tmp = hashCons();
  hashC.outputLen = tmp.outputLen;
  hashC.blockLen = tmp.blockLen;
  hashC.create = () => hashCons();
  return hashC;
}

// node_modules/@noble/hashes/esm/_md.js
function setBigUint64(view, byteOffset, value, isLE) {
  if (typeof view.setBigUint64 === "function")
    return view.setBigUint64(byteOffset, value, isLE);
  const _32n = BigInt(32);
  const _u32_max = BigInt(4294967295);
  const wh = Number(value >> _32n & _u32_max);
  const wl = Number(value & _u32_max);
  const h = isLE ? 4 : 0;
  const l = isLE ? 0 : 4;
  view.setUint32(byteOffset + h, wh, isLE);
  view.setUint32(byteOffset + l, wl, isLE);
}
function Chi(a, b, c) {
  return a & b ^ ~a & c;
}
function Maj(a, b, c) {
  return a & b ^ a & c ^ b & c;
}

class HashMD extends Hash {
  constructor(blockLen, outputLen, padOffset, isLE) {
    super();
    this.finished = false;
    this.length = 0;
    this.pos = 0;
    this.destroyed = false;
    this.blockLen = blockLen;
    this.outputLen = outputLen;
    this.padOffset = padOffset;
    this.isLE = isLE;
    this.buffer = new Uint8Array(blockLen);
    this.view = createView(this.buffer);
  }
  update(data) {
    aexists(this);
    data = toBytes(data);
    abytes(data);
    const { view, buffer, blockLen } = this;
    const len = data.length;
    for (let pos = 0;pos < len; ) {
      const take = Math.min(blockLen - this.pos, len - pos);
      if (take === blockLen) {
        const dataView = createView(data);
        for (;blockLen <= len - pos; pos += blockLen)
          this.process(dataView, pos);
        continue;
      }
      buffer.set(data.subarray(pos, pos + take), this.pos);
      this.pos += take;
      pos += take;
      if (this.pos === blockLen) {
        this.process(view, 0);
        this.pos = 0;
      }
    }
    this.length += data.length;
    this.roundClean();
    return this;
  }
  digestInto(out) {
    aexists(this);
    aoutput(out, this);
    this.finished = true;
    const { buffer, view, blockLen, isLE } = this;
    let { pos } = this;
    buffer[pos++] = 128;
    clean(this.buffer.subarray(pos));
    if (this.padOffset > blockLen - pos) {
      this.process(view, 0);
      pos = 0;
    }
    for (let i = pos;i < blockLen; i++)
      buffer[i] = 0;
    setBigUint64(view, blockLen - 8, BigInt(this.length * 8), isLE);
    this.process(view, 0);
    const oview = createView(out);
    const len = this.outputLen;
    if (len % 4)
      throw new Error("_sha2: outputLen should be aligned to 32bit");
    const outLen = len / 4;
    const state = this.get();
    if (outLen > state.length)
      throw new Error("_sha2: outputLen bigger than state");
    for (let i = 0;i < outLen; i++)
      oview.setUint32(4 * i, state[i], isLE);
  }
  digest() {
    const { buffer, outputLen } = this;
    this.digestInto(buffer);
    const res = buffer.slice(0, outputLen);
    this.destroy();
    return res;
  }
  _cloneInto(to) {
    to || (to = new this.constructor);
    to.set(...this.get());
    const { blockLen, buffer, length, finished, destroyed, pos } = this;
    to.destroyed = destroyed;
    to.finished = finished;
    to.length = length;
    to.pos = pos;
    if (length % blockLen)
      to.buffer.set(buffer);
    return to;
  }
  clone() {
    return this._cloneInto();
  }
}
var SHA256_IV = /* @__PURE__ */ Uint32Array.from([
  1779033703,
  3144134277,
  1013904242,
  2773480762,
  1359893119,
  2600822924,
  528734635,
  1541459225
]);

// node_modules/@noble/hashes/esm/sha2.js
var SHA256_K = /* @__PURE__ */ Uint32Array.from([
  1116352408,
  1899447441,
  3049323471,
  3921009573,
  961987163,
  1508970993,
  2453635748,
  2870763221,
  3624381080,
  310598401,
  607225278,
  1426881987,
  1925078388,
  2162078206,
  2614888103,
  3248222580,
  3835390401,
  4022224774,
  264347078,
  604807628,
  770255983,
  1249150122,
  1555081692,
  1996064986,
  2554220882,
  2821834349,
  2952996808,
  3210313671,
  3336571891,
  3584528711,
  113926993,
  338241895,
  666307205,
  773529912,
  1294757372,
  1396182291,
  1695183700,
  1986661051,
  2177026350,
  2456956037,
  2730485921,
  2820302411,
  3259730800,
  3345764771,
  3516065817,
  3600352804,
  4094571909,
  275423344,
  430227734,
  506948616,
  659060556,
  883997877,
  958139571,
  1322822218,
  1537002063,
  1747873779,
  1955562222,
  2024104815,
  2227730452,
  2361852424,
  2428436474,
  2756734187,
  3204031479,
  3329325298
]);
var SHA256_W = /* @__PURE__ */ new Uint32Array(64);

class SHA256 extends HashMD {
  constructor(outputLen = 32) {
    super(64, outputLen, 8, false);
    this.A = SHA256_IV[0] | 0;
    this.B = SHA256_IV[1] | 0;
    this.C = SHA256_IV[2] | 0;
    this.D = SHA256_IV[3] | 0;
    this.E = SHA256_IV[4] | 0;
    this.F = SHA256_IV[5] | 0;
    this.G = SHA256_IV[6] | 0;
    this.H = SHA256_IV[7] | 0;
  }
  get() {
    const { A, B, C, D, E, F, G, H } = this;
    return [A, B, C, D, E, F, G, H];
  }
  set(A, B, C, D, E, F, G, H) {
    this.A = A | 0;
    this.B = B | 0;
    this.C = C | 0;
    this.D = D | 0;
    this.E = E | 0;
    this.F = F | 0;
    this.G = G | 0;
    this.H = H | 0;
  }
  process(view, offset) {
    for (let i = 0;i < 16; i++, offset += 4)
      SHA256_W[i] = view.getUint32(offset, false);
    for (let i = 16;i < 64; i++) {
      const W15 = SHA256_W[i - 15];
      const W2 = SHA256_W[i - 2];
      const s0 = rotr(W15, 7) ^ rotr(W15, 18) ^ W15 >>> 3;
      const s1 = rotr(W2, 17) ^ rotr(W2, 19) ^ W2 >>> 10;
      SHA256_W[i] = s1 + SHA256_W[i - 7] + s0 + SHA256_W[i - 16] | 0;
    }
    let { A, B, C, D, E, F, G, H } = this;
    for (let i = 0;i < 64; i++) {
      const sigma1 = rotr(E, 6) ^ rotr(E, 11) ^ rotr(E, 25);
      const T1 = H + sigma1 + Chi(E, F, G) + SHA256_K[i] + SHA256_W[i] | 0;
      const sigma0 = rotr(A, 2) ^ rotr(A, 13) ^ rotr(A, 22);
      const T2 = sigma0 + Maj(A, B, C) | 0;
      H = G;
      G = F;
      F = E;
      E = D + T1 | 0;
      D = C;
      C = B;
      B = A;
      A = T1 + T2 | 0;
    }
    A = A + this.A | 0;
    B = B + this.B | 0;
    C = C + this.C | 0;
    D = D + this.D | 0;
    E = E + this.E | 0;
    F = F + this.F | 0;
    G = G + this.G | 0;
    H = H + this.H | 0;
    this.set(A, B, C, D, E, F, G, H);
  }
  roundClean() {
    clean(SHA256_W);
  }
  destroy() {
    this.set(0, 0, 0, 0, 0, 0, 0, 0);
    clean(this.buffer);
  }
}
var sha256 = /* @__PURE__ */ createHasher(() => new SHA256);

// src/lib/sha256-portable.ts
var sha2562 = (bytes) => sha256(bytes);

// src/domain/encoding.ts
var encoder = new TextEncoder;
var decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
var utf8 = (text) => encoder.encode(text);
function fromUtf8(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}
function toBase64(bytes) {
  if (bytes.toBase64 !== undefined)
    return bytes.toBase64();
  let binary = "";
  for (const byte of bytes)
    binary += String.fromCharCode(byte);
  return btoa(binary);
}
function fromBase64(text) {
  try {
    const bytes = Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    return toBase64(bytes) === text ? bytes : null;
  } catch {
    return null;
  }
}
var toBase64url = (bytes) => toBase64(bytes).replace(/=+$/, "").replaceAll("+", "-").replaceAll("/", "_");
function fromBase64url(text) {
  if (/[+/=]/.test(text))
    return null;
  const standard = text.replaceAll("-", "+").replaceAll("_", "/");
  return fromBase64(standard.padEnd(Math.ceil(text.length / 4) * 4, "="));
}
function concatBytes(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

// src/verify/lean-shapes.ts
var isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
var number = (fits) => ({ minimum = -Infinity, maximum = Infinity } = {}) => (value) => typeof value === "number" && fits(value) && value >= minimum && value <= maximum;
var Type = {
  Null: () => (value) => value === null,
  Boolean: () => (value) => typeof value === "boolean",
  Literal: (literal) => (value) => value === literal,
  Integer: number(Number.isInteger),
  Number: number(Number.isFinite),
  String({ pattern = "", minLength = 0 } = {}) {
    const expression = new RegExp(pattern);
    return (value) => typeof value === "string" && value.length >= minLength && expression.test(value);
  },
  Union: (shapes) => (value) => shapes.some((fits) => fits(value)),
  Array: (fits) => (value) => Array.isArray(value) && value.every(fits),
  Optional: (fits) => Object.assign((value) => fits(value), { optional: true }),
  Object(members, { additionalProperties = true } = {}) {
    const shapes = Object.entries(members);
    return (value) => isObject(value) && shapes.every(([name, fits]) => fits.optional && value[name] === undefined || fits(value[name])) && (additionalProperties || Object.keys(value).every((name) => Object.hasOwn(members, name)));
  }
};
var shapeCheck = (shape) => shape;

// src/domain/canonical-json.ts
function canonicalJson(value) {
  if (value === null || typeof value === "boolean")
    return String(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value))
      throw new TypeError("canonical JSON holds finite numbers only");
    return JSON.stringify(value);
  }
  if (typeof value === "string")
    return quoted(value);
  if (isArray(value))
    return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object")
    throw new TypeError(`canonical JSON cannot hold ${typeof value}`);
  let text = "";
  for (const name of Object.keys(value).sort())
    text += `${text === "" ? "" : ","}${quoted(name)}:${canonicalJson(value[name])}`;
  return `{${text}}`;
}
var PLAIN = /^[ !#-[\]-~]*$/;
function quoted(text) {
  if (PLAIN.test(text))
    return `"${text}"`;
  if (hasLoneSurrogate(text))
    throw new TypeError("canonical JSON cannot hold a lone surrogate");
  return JSON.stringify(text);
}
function hasLoneSurrogate(text) {
  if (!/[\ud800-\udfff]/.test(text))
    return false;
  return /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text);
}
function sameJson(a, b) {
  if (a === b)
    return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null)
    return false;
  if (Array.isArray(a) !== Array.isArray(b))
    return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length)
    return false;
  for (const name of names)
    if (!Object.hasOwn(b, name) || !sameJson(memberOf(a, name), memberOf(b, name)))
      return false;
  return true;
}
var memberOf = (value, name) => value[name];
function parsedJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return;
  }
}
function isArray(value) {
  return Array.isArray(value);
}

// src/domain/event-fields.ts
function declareEvent(declaration) {
  return declaration;
}
var strict = { additionalProperties: false };
var Nullable = (schema) => Type.Union([schema, Type.Null()]);
var V1 = Type.Literal(1);
var Instant = Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$" });
var Text = Type.String();
var Commitment = Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" });
var Hex = Type.String({ pattern: "^[0-9a-f]{64}$" });
var Count = Type.Integer({ minimum: 0 });
var Millis = Nullable(Type.Number({ minimum: 0 }));
var Method = Type.Union([
  Type.Literal("POST"),
  Type.Literal("PUT"),
  Type.Literal("PATCH"),
  Type.Literal("DELETE")
]);
var Mode = Type.Union([Type.Literal("demo"), Type.Literal("x402")]);
var Route = Type.Union([Type.Literal("execute/webhook"), Type.Literal("execute/guided-webhook")]);
var Phase = Type.Union([
  Type.Literal("dns"),
  Type.Literal("connect"),
  Type.Literal("tls"),
  Type.Literal("request"),
  Type.Literal("headers"),
  Type.Literal("body")
]);
var Sent = Type.Union([Type.Literal("no"), Type.Literal("maybe"), Type.Literal("yes")]);
var ErrorCategory = Type.Union([
  Type.Literal("timeout"),
  Type.Literal("dns_error"),
  Type.Literal("connect_error"),
  Type.Literal("tls_error"),
  Type.Literal("protocol_error"),
  Type.Literal("truncated_response"),
  Type.Literal("target_redirect"),
  Type.Literal("target_rate_limited"),
  Type.Literal("target_client_error"),
  Type.Literal("target_server_error"),
  Type.Literal("target_refused"),
  Type.Literal("interrupted_unknown"),
  Type.Literal("not_executed")
]);
var Timings = Type.Object({ dnsMs: Millis, connectMs: Millis, tlsMs: Millis, ttfbMs: Millis, totalMs: Type.Number({ minimum: 0 }) }, strict);
var PaymentFacts = Type.Object({
  scheme: Text,
  network: Text,
  asset: Text,
  amount: Type.String({ pattern: "^\\d+$" }),
  payTo: Text,
  payer: Text,
  transaction: Nullable(Text),
  payloadHash: Hex
}, strict);
var RequestCommitments = Type.Object({
  target_url: Commitment,
  target_origin: Commitment,
  header_names: Commitment,
  request_body_sha256: Commitment,
  idempotency_key: Nullable(Commitment)
}, strict);

// src/domain/receipt/payload.ts
var Commitments = Type.Array(Commitment);
var Outcome = Type.Union([Type.Literal("succeeded"), Type.Literal("failed")]);
var HttpStatus = Nullable(Type.Integer({ minimum: 100, maximum: 999 }));
var members = {
  receiptId: Type.String(),
  jobId: Type.String(),
  decisionId: Nullable(Type.String()),
  decisionHash: Nullable(Type.String()),
  iat: Type.Integer({ minimum: 0 }),
  mode: Mode,
  payment: Nullable(PaymentFacts),
  request: Type.Object({ method: Method, _sd: Commitments }, strict),
  attempts: Type.Array(Type.Object({
    n: Type.Integer({ minimum: 1, maximum: 3 }),
    startedAt: Type.String(),
    endedAt: Type.String(),
    phase: Phase,
    sent: Sent,
    outcome: Outcome,
    status: HttpStatus,
    errorCategory: Nullable(ErrorCategory),
    tlsVersion: Nullable(Type.String()),
    exempted: Type.Optional(Type.Literal(true)),
    _sd: Commitments
  }, strict)),
  outcome: Type.Object({
    status: Outcome,
    responseStatus: HttpStatus,
    errorCategory: Nullable(ErrorCategory),
    responseBytes: Nullable(Type.Integer({ minimum: 0 })),
    truncated: Type.Boolean(),
    _sd: Commitments
  }, strict),
  stream: Type.Object({
    id: Type.String(),
    revision: Type.String({ pattern: "^\\d+$" }),
    chain: Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" })
  }, strict)
};
var ReceiptLog = Type.Object({ origin: Type.String({ minLength: 1 }), mmdSeconds: Type.Integer({ minimum: 1 }) }, strict);
var ReceiptPayload = Type.Union([
  Type.Object({ v: Type.Literal(1), ...members }, strict),
  Type.Object({ v: Type.Literal(2), ...members, log: ReceiptLog }, strict)
]);
var RECEIPT_VERSIONS = [1, 2];
var isReceiptPayload = shapeCheck(ReceiptPayload);
var logOf = (payload) => payload.v === 2 ? payload.log : null;
function receiptAttempt(attempt) {
  return {
    n: attempt.number,
    startedAt: attempt.startedAt,
    endedAt: attempt.endedAt,
    phase: attempt.phase,
    sent: attempt.sent,
    outcome: attempt.outcome,
    status: attempt.status,
    errorCategory: attempt.errorCategory,
    tlsVersion: attempt.tlsVersion,
    ...attempt.exempted ? { exempted: true } : {},
    _sd: present([attempt.leafCommitment, attempt.addressCommitment]).sort()
  };
}
var present = (values) => values.filter((value) => value !== null);
var shownSignature = (jws) => `ed25519:${jws.slice(jws.lastIndexOf(".") + 1)}`;
var RECEIPT_TYPE = "relay-receipt+jws";
function parseJws(jws) {
  const parts = jws.split(".");
  const [head, body, tail] = parts;
  if (parts.length !== 3 || head === undefined || body === undefined || tail === undefined)
    return null;
  const header = jsonPart(head);
  const payload = jsonPart(body, true);
  const signature = fromBase64url(tail);
  if (signature === null || payload === undefined || header === null || typeof header !== "object")
    return null;
  return {
    header: { alg: undefined, kid: undefined, typ: undefined, ...header },
    payload,
    signingInput: `${head}.${body}`,
    signature
  };
}
function jsonPart(part, spelledOnce = false) {
  const bytes = fromBase64url(part);
  const text = bytes === null ? null : fromUtf8(bytes);
  if (text === null)
    return;
  const value = parsedJson(text);
  return value !== undefined && spelledOnce && JSON.stringify(value) !== text ? null : value;
}
var payloadIn = (jws) => isReceiptPayload(jws?.payload) ? jws.payload : null;
var payloadOf = (jws) => payloadIn(parseJws(jws));

// src/domain/transparency/merkle.ts
var LEAF = Uint8Array.of(0);
var NODE = Uint8Array.of(1);
var leafHash = (data) => sha2562(concatBytes(LEAF, data));
var nodeHash = (left, right) => sha2562(concatBytes(NODE, left, right));
function sameHash(a, b) {
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}
var isCount = (value) => Number.isSafeInteger(value) && value >= 0;
var half = (n) => Math.floor(n / 2);
function verifyInclusion(claim) {
  const { index, size, leaf, proof, root } = claim;
  if (!isCount(index) || !isCount(size) || index >= size)
    return false;
  let at = index;
  let last = size - 1;
  let hash = leaf;
  for (const sibling of proof) {
    if (last === 0)
      return false;
    if (at % 2 === 1 || at === last) {
      hash = nodeHash(sibling, hash);
      while (at % 2 === 0 && at !== 0)
        [at, last] = [half(at), half(last)];
    } else
      hash = nodeHash(hash, sibling);
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && sameHash(hash, root);
}

// src/domain/transparency/note.ts
var ED25519 = Uint8Array.of(1);
var MAX_NOTE_LENGTH = 256 * 1024;
function keyIdOf({ name, publicKey }) {
  return sha2562(concatBytes(utf8(`${name}
`), ED25519, publicKey)).slice(0, 4);
}
function parseNote(note) {
  if (note.length > MAX_NOTE_LENGTH || hasControl(note))
    return null;
  const border = note.lastIndexOf(`

`);
  if (border < 0 || !note.endsWith(`
`))
    return null;
  const lines = note.slice(border + 2, -1).split(`
`);
  const signatures = [];
  for (const line of lines) {
    const [, name = "", base64 = ""] = /^— ([^\s+]+) (\S+)$/u.exec(line) ?? [];
    const bytes = fromBase64(base64);
    if (name === "" || bytes === null || bytes.length < 5)
      return null;
    signatures.push({ name, keyId: bytes.slice(0, 4), signature: bytes.slice(4) });
  }
  return { text: note.slice(0, border + 1), signatures };
}
function hasControl(text) {
  for (let at = 0;at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 32 && code !== 10)
      return true;
  }
  return false;
}
async function verifyNote(note, keys, primitives) {
  let signedBy = null;
  for (const { name, keyId, signature } of note.signatures) {
    for (const key of keys) {
      if (key.name !== name || !sameHash(keyIdOf(key), keyId))
        continue;
      if (!await primitives.ed25519Verify(key.publicKey, utf8(note.text), signature))
        return null;
      signedBy ??= key;
    }
  }
  return signedBy;
}

// src/domain/transparency/tiles.ts
var TILE_HEIGHT = 8;
var TILE_WIDTH = 2 ** TILE_HEIGHT;
var HASH_BYTES = 32;

// src/domain/transparency/checkpoint.ts
function parseCheckpoint(note) {
  const parsed = parseNote(note);
  if (parsed === null)
    return null;
  const [origin = "", size = "", base64 = "", ...more] = parsed.text.split(`
`);
  const root = fromBase64(base64);
  if (origin === "" || !/^(0|[1-9]\d*)$/.test(size) || root?.length !== HASH_BYTES)
    return null;
  if (more.pop() !== "" || more.includes("") || !isCount(Number(size)))
    return null;
  return { origin, size: Number(size), root };
}
var verifyCheckpoint = (note, keys, primitives) => verifyOwnCheckpoint(note, keys.filter(({ compromisedAt }) => compromisedAt === null), primitives);
async function verifyOwnCheckpoint(note, keys, primitives) {
  const [parsed, head] = [parseNote(note), parseCheckpoint(note)];
  if (parsed === null || head === null)
    return null;
  const trusted = keys.flatMap(({ keyId, purpose, x }) => {
    const publicKey = fromBase64url(x);
    const fits = purpose === "checkpoint" && publicKey?.length === 32;
    return fits ? [{ name: head.origin, publicKey, keyId }] : [];
  });
  const signer = await verifyNote(parsed, trusted, primitives);
  return signer && { ...head, keyId: signer.keyId };
}

// src/domain/transparency/tlog-proof.ts
var FORMAT = "c2sp.org/tlog-proof@v1";
function parseTlogProof(text) {
  const border = text.indexOf(`

`);
  if (border < 0)
    return null;
  const [format, ...lines] = text.slice(0, border).split(`
`);
  if (lines[0]?.startsWith("extra "))
    lines.shift();
  const [, digits] = /^index (0|[1-9]\d*)$/.exec(lines.shift() ?? "") ?? [];
  const path = lines.map(fromBase64);
  if (format !== FORMAT || digits === undefined || !Number.isSafeInteger(Number(digits)))
    return null;
  if (!isPath(path))
    return null;
  return { index: Number(digits), path, checkpoint: text.slice(border + 2) };
}
var isPath = (path) => path.length <= 64 && path.every((hash) => hash?.length === HASH_BYTES);
async function verifyTlogProof(text, expected, keys, primitives) {
  const proof = parseTlogProof(text);
  if (proof === null)
    return { ok: false, problem: "malformed" };
  const checkpoint = await verifyCheckpoint(proof.checkpoint, keys, primitives);
  if (checkpoint === null)
    return { ok: false, problem: "checkpoint" };
  if (expected.origin !== null && checkpoint.origin !== expected.origin)
    return { ok: false, problem: "origin" };
  const included = isIncluded(proof, expected.leafData, checkpoint);
  return included ? { ok: true, index: proof.index, checkpoint } : { ok: false, problem: "inclusion" };
}
function isIncluded({ index, path }, data, { size, root }) {
  return verifyInclusion({ index, size, leaf: leafHash(data), proof: path, root });
}

// src/domain/receipt/document.ts
var RECEIPT_FORMS = "it must be the answer of GET /api/receipts/{id}, an execution response, or a bare JWS";
function readReceiptDocument(text) {
  const trimmed = text.trim();
  if (/^[^\s."{}]+\.[^\s.]*\.[^\s.]*$/.test(trimmed)) {
    return { kind: "jws", jws: trimmed, receiptId: null, jobId: null, text: {} };
  }
  const value = parsedJson(trimmed);
  return value === undefined ? none("is neither JSON nor a JWS") : receiptDocumentOf(value);
}
function receiptDocumentOf(value) {
  if (!isMap(value))
    return none("holds JSON without a receipt");
  const { jws, receipt, job } = value;
  if (typeof jws === "string") {
    return { kind: "receipt", jws, receiptId: textOrNull(value.id), jobId: null, text: value };
  }
  if (isMap(receipt) && typeof receipt.jws === "string") {
    const jobId = isMap(job) ? textOrNull(job.id) : null;
    return { kind: "execution", jws: receipt.jws, receiptId: textOrNull(receipt.id), jobId, text: value };
  }
  return none(errorIn(value) ?? "holds JSON without a receipt");
}
function errorIn(value) {
  const error = isMap(value) ? value.error : null;
  return isMap(error) ? `holds an error answer (${textOrNull(error.code) ?? "of no known kind"})` : null;
}
var none = (problem) => ({ kind: null, problem });
function disclosuresOf(value) {
  const list = isMap(value) ? value.disclosures : value;
  return Array.isArray(list) && list.every((text) => typeof text === "string") ? list : null;
}
function differences({ kind, jws, text }) {
  const read = parseJws(jws);
  const payload = payloadIn(read);
  if (payload === null || kind === "jws")
    return [];
  const keyId = textOrNull(read?.header.kid);
  const signed = kind === "receipt" ? receiptCopy(payload, keyId, jws) : executionCopy(payload, keyId, jws);
  return compare("", text, signed);
}
function receiptCopy(payload, keyId, jws) {
  return { id: payload.receiptId, keyId, signature: shownSignature(jws), payload: { ...payload } };
}
function executionCopy(payload, keyId, jws) {
  const { outcome, payment } = payload;
  return {
    mode: payload.mode,
    job: {
      id: payload.jobId,
      status: outcome.status,
      attempts: payload.attempts.length,
      decisionId: payload.decisionId,
      responseStatus: outcome.responseStatus,
      errorCategory: outcome.errorCategory
    },
    receipt: { id: payload.receiptId, keyId, signature: shownSignature(jws) },
    payment
  };
}
function compare(field, text, signed) {
  if (text === undefined)
    return [];
  if (isMap(text) && isMap(signed)) {
    const names = field.startsWith("payload") ? Object.keys({ ...signed, ...text }) : Object.keys(signed);
    return names.flatMap((name) => compare(field === "" ? name : `${field}.${name}`, text[name], signed[name] ?? null));
  }
  const written = canonical(text);
  if (written === canonicalJson(signed))
    return [];
  return [{ field, shown: written === null ? UNWRITABLE : text, signed }];
}
var UNWRITABLE = "(something that no JSON text of a receipt can hold)";
function canonical(value) {
  try {
    return canonicalJson(value);
  } catch {
    return null;
  }
}
var isMap = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
var textOrNull = (value) => typeof value === "string" ? value : null;

// src/domain/receipt/open-disclosures.ts
function openDisclosures(payload, texts) {
  const names = new Set;
  const opened = [];
  for (const text of texts) {
    const one = openOne(payload, text);
    opened.push(one.ok && names.has(one.name) ? { ok: false, name: one.name, problem: "repeated" } : one);
    if (one.ok)
      names.add(one.name);
  }
  return opened;
}
function openOne(payload, text) {
  const read = readDisclosure(text);
  if (read === null)
    return { ok: false, name: null, problem: "malformed" };
  const { name, value } = read;
  const commitment = toBase64url(sha2562(utf8(text)));
  if (placeOf(payload, name)?.includes(commitment))
    return { ok: true, name, value };
  const anywhere = [payload.request, payload.outcome, ...payload.attempts].some(({ _sd }) => _sd.includes(commitment));
  return { ok: false, name, problem: anywhere ? "misplaced" : "not_committed" };
}
var REQUEST_NAMES = [
  "target_url",
  "target_origin",
  "header_names",
  "request_body_sha256",
  "idempotency_key"
];
function placeOf({ request, outcome, attempts }, name) {
  if (REQUEST_NAMES.includes(name))
    return request._sd;
  if (name === "response_body_sha256")
    return outcome._sd;
  const [, number] = /^attempt_([1-9]\d*)_(?:leaf_sha256|address)$/.exec(name) ?? [];
  return attempts.find(({ n }) => String(n) === number)?._sd ?? null;
}
function readDisclosure(text) {
  const bytes = fromBase64url(text);
  const json = bytes === null ? null : fromUtf8(bytes);
  if (json === null)
    return null;
  const parts = parsedJson(json);
  if (!Array.isArray(parts) || parts.length !== 3)
    return null;
  const [salt, name, value] = parts;
  if (typeof salt !== "string" || fromBase64url(salt)?.length !== 16 || typeof name !== "string")
    return null;
  if (typeof value === "string")
    return { name, value };
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? { name, value } : null;
}

// src/domain/decision/events.ts
var Reason = Type.Object({ code: Text, message: Text }, strict);
var facts = {
  price: Text,
  network: Text,
  payTo: Nullable(Text),
  trustScore: Nullable(Type.Number()),
  recentFailureRate: Type.Number(),
  recentFinishedJobs: Count,
  policyVerdict: Text,
  method: Method,
  idempotencyKeyPresent: Type.Boolean(),
  strippedHeaders: Count
};
var decision = (v, of) => Type.Object({
  v,
  decisionId: Text,
  recommendation: Type.Union([
    Type.Literal("pay_and_execute"),
    Type.Literal("manual_review"),
    Type.Literal("do_not_pay")
  ]),
  confidence: Type.Union([Type.Literal("high"), Type.Literal("medium")]),
  blockingIssues: Type.Array(Reason),
  warnings: Type.Array(Reason),
  reasons: Type.Array(Reason),
  actionHash: Hex,
  policyHash: Hex,
  buyerPolicy: Type.Object({
    maxPriceUsd: Nullable(Text),
    requireReceipt: Type.Boolean(),
    requirePolicyPass: Type.Boolean(),
    requireIdempotencyKey: Type.Boolean(),
    minTrustScore: Type.Number(),
    allowedNetworks: Nullable(Type.Array(Text))
  }, strict),
  facts: of,
  createdAt: Instant,
  expiresAt: Instant
}, strict);
var version1 = decision(V1, Type.Object(facts, strict));
var version2 = decision(Type.Literal(2), Type.Object({
  ...facts,
  measured: Type.Boolean()
}, strict));
var DecisionRecorded = declareEvent({
  stream: "decision",
  time: "createdAt",
  versions: { 1: version1, 2: version2 },
  upcast: {
    1: (data) => ({
      ...data,
      v: 2,
      facts: { ...data.facts, measured: true }
    })
  }
});

// src/domain/job/events.ts
var JobStarted = declareEvent({
  stream: "job",
  time: "startedAt",
  versions: {
    1: Type.Object({
      v: V1,
      jobId: Text,
      mode: Mode,
      route: Route,
      method: Method,
      fingerprint: Hex,
      payment: Nullable(PaymentFacts),
      paymentStream: Nullable(Text),
      claimStream: Nullable(Text),
      decisionId: Nullable(Text),
      decisionHash: Nullable(Hex),
      attemptsAllowed: Type.Integer({ minimum: 1, maximum: 3 }),
      backoffMs: Count,
      timeoutMs: Count,
      leaseMs: Count,
      owner: Text,
      commitments: RequestCommitments,
      startedAt: Instant
    }, strict)
  }
});
var AttemptMade = declareEvent({
  stream: "job",
  time: "endedAt",
  versions: {
    1: Type.Object({
      v: V1,
      jobId: Text,
      number: Type.Integer({ minimum: 1, maximum: 3 }),
      startedAt: Instant,
      endedAt: Instant,
      phase: Phase,
      sent: Sent,
      outcome: Type.Union([Type.Literal("succeeded"), Type.Literal("failed")]),
      status: Nullable(Type.Integer({ minimum: 100, maximum: 999 })),
      errorCategory: Nullable(ErrorCategory),
      timings: Timings,
      tlsVersion: Nullable(Text),
      exempted: Type.Boolean(),
      leafCommitment: Nullable(Commitment),
      addressCommitment: Nullable(Commitment),
      retryAfterMs: Nullable(Count),
      willRetry: Type.Boolean(),
      waitMs: Nullable(Count)
    }, strict)
  }
});
var JobCompleted = declareEvent({
  stream: "job",
  time: "completedAt",
  versions: {
    1: Type.Object({
      v: V1,
      jobId: Text,
      decisionId: Nullable(Text),
      status: Type.Union([Type.Literal("succeeded"), Type.Literal("failed")]),
      attempts: Type.Integer({ minimum: 0, maximum: 3 }),
      responseStatus: Nullable(Type.Integer({ minimum: 100, maximum: 999 })),
      errorCategory: Nullable(ErrorCategory),
      responseBytes: Nullable(Count),
      truncated: Type.Boolean(),
      responseCommitment: Nullable(Commitment),
      closedBy: Type.Union([Type.Literal("owner"), Type.Literal("recovery")]),
      completedAt: Instant
    }, strict)
  }
});
var ReceiptSigned = declareEvent({
  stream: "job",
  time: "signedAt",
  versions: {
    1: Type.Object({
      v: V1,
      jobId: Text,
      decisionId: Nullable(Text),
      receiptId: Text,
      keyId: Text,
      jws: Text,
      signedAt: Instant
    }, strict)
  }
});

// src/domain/payment/events.ts
var PaymentReserved = declareEvent({
  stream: "payment",
  time: "reservedAt",
  versions: {
    1: Type.Object({
      v: V1,
      jobId: Text,
      fingerprint: Hex,
      scheme: Text,
      network: Text,
      asset: Text,
      amount: Type.String({ pattern: "^\\d+$" }),
      payTo: Text,
      payer: Text,
      nonce: Text,
      validBefore: Type.String({ pattern: "^\\d+$" }),
      payloadHash: Hex,
      x402Version: Type.Union([Type.Literal(1), Type.Literal(2)]),
      owner: Text,
      reservedAt: Instant
    }, strict)
  }
});
var PaymentSettled = declareEvent({
  stream: "payment",
  time: "settledAt",
  versions: {
    1: Type.Object({
      v: V1,
      jobId: Text,
      transaction: Nullable(Text),
      evidence: Type.Union([
        Type.Literal("facilitator"),
        Type.Literal("nonce_consumed"),
        Type.Literal("chain"),
        Type.Literal("operator")
      ]),
      settledAt: Instant
    }, strict)
  }
});
var PaymentRejected = declareEvent({
  stream: "payment",
  time: "rejectedAt",
  versions: {
    1: Type.Object({
      v: V1,
      jobId: Text,
      reason: Text,
      evidence: Type.Union([Type.Literal("facilitator"), Type.Literal("chain"), Type.Literal("operator")]),
      rejectedAt: Instant
    }, strict)
  }
});
var PaymentReleased = declareEvent({
  stream: "payment",
  time: "releasedAt",
  versions: { 1: Type.Object({ v: V1, jobId: Text, lostKeyTo: Text, releasedAt: Instant }, strict) }
});
var SettlementUnknown = declareEvent({
  stream: "payment",
  time: "unknownAt",
  versions: { 1: Type.Object({ v: V1, jobId: Text, cause: Text, unknownAt: Instant }, strict) }
});
var SettlementRetried = declareEvent({
  stream: "payment",
  time: "retriedAt",
  versions: { 1: Type.Object({ v: V1, jobId: Text, owner: Text, retriedAt: Instant }, strict) }
});
var PaymentRefunded = declareEvent({
  stream: "payment",
  time: "refundedAt",
  versions: {
    1: Type.Object({
      v: V1,
      jobId: Text,
      network: Text,
      asset: Text,
      amount: Type.String({ pattern: "^\\d+$" }),
      payer: Text,
      transaction: Type.String({ pattern: "^0x[0-9a-f]{64}$" }),
      evidence: Type.Union([Type.Literal("chain"), Type.Literal("operator")]),
      refundedAt: Instant
    }, strict)
  }
});
var IdempotencyKeyClaimed = declareEvent({
  stream: "claim",
  time: "claimedAt",
  versions: {
    1: Type.Object({ v: V1, jobId: Text, fingerprint: Hex, paymentStream: Nullable(Text), claimedAt: Instant }, strict)
  }
});
var IdempotencyKeyReleased = declareEvent({
  stream: "claim",
  time: "releasedAt",
  versions: {
    1: Type.Object({
      v: V1,
      jobId: Text,
      reason: Type.Union([
        Type.Literal("payment_rejected"),
        Type.Literal("payment_released"),
        Type.Literal("retention_over")
      ]),
      releasedAt: Instant
    }, strict)
  }
});

// src/domain/signing-keys/events.ts
var KeyPurpose = Type.Union([Type.Literal("receipt"), Type.Literal("checkpoint")]);
var SigningKeyActivated = declareEvent({
  stream: "keys",
  time: "activatedAt",
  versions: {
    1: Type.Object({
      v: V1,
      keyId: Commitment,
      purpose: KeyPurpose,
      alg: Type.Literal("EdDSA"),
      x: Commitment,
      secretCheck: Hex,
      activatedAt: Instant
    }, strict)
  }
});
var SigningKeyRetired = declareEvent({
  stream: "keys",
  time: "retiredAt",
  versions: {
    1: Type.Object({
      v: V1,
      keyId: Commitment,
      reason: Type.Union([Type.Literal("rotated"), Type.Literal("retired"), Type.Literal("compromised")]),
      effectiveAt: Instant,
      compromisedAt: Nullable(Instant),
      retiredAt: Instant
    }, strict)
  }
});
var CheckpointSigned = declareEvent({
  stream: "receiptLog",
  time: "signedAt",
  versions: {
    1: Type.Object({
      v: V1,
      origin: Text,
      size: Type.String({ pattern: "^\\d+$" }),
      root: Text,
      keyId: Commitment,
      note: Text,
      signedAt: Instant
    }, strict)
  }
});

// src/domain/events.ts
var EVENTS = {
  JobStarted,
  AttemptMade,
  JobCompleted,
  ReceiptSigned,
  PaymentReserved,
  PaymentSettled,
  PaymentRejected,
  PaymentReleased,
  SettlementUnknown,
  SettlementRetried,
  IdempotencyKeyClaimed,
  IdempotencyKeyReleased,
  DecisionRecorded,
  SigningKeyActivated,
  SigningKeyRetired,
  CheckpointSigned,
  PaymentRefunded
};
var EVENT_TYPES = Object.keys(EVENTS);

// src/domain/event-codec.ts
var versions = new Map(EVENT_TYPES.map((type) => {
  const { versions, upcast = {} } = EVENTS[type];
  const read = Object.entries(versions).map(([v, schema]) => [Number(v), { fits: shapeCheck(schema), upcast: upcast[Number(v)] ?? null }]);
  return [type, new Map(read)];
}));
function decodeEvent({ type, data }) {
  const version = versions.get(type)?.get(data?.v);
  if (version?.fits(data) !== true)
    return null;
  return { type, data: version.upcast === null ? data : version.upcast(data) };
}

// src/domain/signing-keys/keys.ts
var keyValidAt = (key, iat) => key.purpose === "receipt" && keyOpenAt(key, iat);
function keyOpenAt({ notBefore, notAfter, compromisedAt }, at) {
  if (at < notBefore || notAfter !== null && at > notAfter)
    return false;
  return compromisedAt === null || at < compromisedAt;
}
var Jwk = Type.Object({
  kty: Type.Literal("OKP"),
  crv: Type.Literal("Ed25519"),
  kid: Type.String(),
  x: Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" }),
  use: Type.Optional(Type.Literal("sig")),
  alg: Type.Optional(Type.Literal("EdDSA")),
  purpose: Type.Optional(KeyPurpose),
  nbf: Type.Optional(Type.Integer()),
  exp: Type.Optional(Type.Integer()),
  revokedAt: Type.Optional(Type.Integer())
});
var isJwk = shapeCheck(Jwk);
var isObject2 = (value) => typeof value === "object" && value !== null;
function fromJwkSet(value) {
  if (!isObject2(value) || !Array.isArray(value.keys))
    return null;
  return value.keys.filter(isJwk).map((jwk) => ({
    keyId: jwk.kid,
    purpose: jwk.purpose ?? "receipt",
    x: jwk.x,
    notBefore: jwk.nbf ?? 0,
    notAfter: jwk.exp ?? null,
    compromisedAt: jwk.revokedAt ?? null
  }));
}

// src/domain/receipt/chain.ts
function eventChain(events) {
  let link = new Uint8Array(32);
  for (const { stream, revision, type, id, data } of events) {
    const json = canonicalJson({ stream, revision: String(revision), type, id, data });
    link = sha2562(concatBytes(link, utf8(json)));
  }
  return toBase64url(link);
}

// src/domain/limits.ts
var INVALID = "400 invalid_request; nothing is clamped.";
var INVALID_ACTIONS = "400 invalid_handoff_actions.";
var INVALID_SCHEDULE = "400 invalid_schedule.";
var RATE_LIMITED = "429 rate_limited.";
var KIB = 1024;
var BODY_BYTES = 128 * KIB;
var JSON_LEVELS = 64;
var MISMATCH_BLOCK_MS = 3600000;
var TIMES = {
  idempotencyRetentionMs: 7 * 86400000,
  decisionValidMs: 24 * 3600000,
  mismatchBlockMs: MISMATCH_BLOCK_MS,
  leaseMarginMs: 15000,
  recoveryGraceMs: 30000,
  responseDeadlineMs: 110000
};
var LIMITS = {
  urlLength: { max: 4096, unit: "characters", meaning: "Length of url.", whenExceeded: INVALID },
  retryAttempts: {
    min: 1,
    max: 3,
    default: 1,
    unit: "attempts",
    meaning: "retry.attempts: attempts of one call, the first included.",
    whenExceeded: INVALID
  },
  retryBackoffMs: {
    min: 0,
    max: 5000,
    default: 250,
    unit: "ms",
    meaning: "retry.backoffMs: base of the exponential backoff with full jitter.",
    whenExceeded: INVALID
  },
  retryWaitMs: {
    max: 5000,
    unit: "ms",
    meaning: "Longest wait between two attempts, and the longest Retry-After of a target that is honoured.",
    whenExceeded: "A longer Retry-After ends the job as failed."
  },
  timeoutMs: {
    min: 1000,
    max: 12000,
    default: 12000,
    unit: "ms",
    meaning: "timeoutMs: one attempt from its look-up to the last byte read.",
    whenExceeded: `${INVALID} A target that takes longer is errorCategory timeout.`
  },
  idempotencyKeyLength: {
    min: 1,
    max: 160,
    unit: "characters",
    meaning: "Length of idempotencyKey.",
    whenExceeded: INVALID
  },
  requestBodyBytes: {
    max: BODY_BYTES,
    unit: "bytes",
    meaning: "The whole JSON body of a call to this service.",
    whenExceeded: "413 body_too_large."
  },
  requestBodyArrivalMs: {
    max: 1e4,
    unit: "ms",
    meaning: "Time in which that body has to arrive.",
    whenExceeded: "408 body_timeout."
  },
  jsonDepth: { max: JSON_LEVELS, unit: "levels", meaning: "Nesting of that body.", whenExceeded: INVALID },
  mcpMessageBytes: {
    max: BODY_BYTES + 32 * KIB,
    unit: "bytes",
    meaning: "A whole MCP message, payment included.",
    whenExceeded: "413, as an error of JSON-RPC."
  },
  mcpMessageDepth: {
    max: JSON_LEVELS + 2,
    unit: "levels",
    meaning: "Nesting of an MCP message.",
    whenExceeded: "400, as an error of JSON-RPC."
  },
  targetHeaders: { max: 64, unit: "headers", meaning: "Number of headers.", whenExceeded: INVALID },
  targetHeaderBytes: {
    max: 16 * KIB,
    unit: "bytes",
    meaning: "Names and values of all headers.",
    whenExceeded: INVALID
  },
  decideBodyBytes: {
    max: 16 * KIB,
    unit: "bytes",
    meaning: "The whole JSON body of a decision.",
    whenExceeded: "413 body_too_large."
  },
  responseBodyBytes: {
    max: 64 * KIB,
    unit: "bytes",
    meaning: "How much of the answer of the target is read and hashed. It is never returned or stored.",
    whenExceeded: "Reading stops; the receipt says truncated."
  },
  responseHeaderBytes: {
    max: 16 * KIB,
    unit: "bytes",
    meaning: "Headers of the answer of the target.",
    whenExceeded: "errorCategory protocol_error."
  },
  policyDnsMs: {
    max: 2000,
    unit: "ms",
    meaning: "Look-up of the target before anything is settled.",
    whenExceeded: "400 target_unresolvable, details.retryable true."
  },
  answerWaitMs: {
    max: 1000,
    unit: "ms",
    meaning: "How long an answer waits so that its links work at once.",
    whenExceeded: "It goes out without waiting longer; a link then answers 503 for a moment."
  },
  recentProofs: {
    min: 1,
    max: 50,
    default: 10,
    unit: "proofs",
    meaning: "limit of recent proofs.",
    whenExceeded: INVALID
  },
  recentDecisions: {
    min: 1,
    max: 50,
    default: 10,
    unit: "decisions",
    meaning: "limit of recent decisions.",
    whenExceeded: INVALID
  },
  monitoringWindowMs: {
    min: 60000,
    max: 30 * 86400000,
    default: 86400000,
    unit: "ms",
    meaning: "windowMs of the monitoring summary.",
    whenExceeded: INVALID
  },
  recentFailures: {
    max: 10,
    unit: "failures",
    meaning: "recentFailures of the monitoring summary.",
    whenExceeded: "Older ones are left out."
  },
  handoffActions: {
    min: 1,
    max: 12,
    unit: "actions",
    meaning: "actions of a browser handoff.",
    whenExceeded: INVALID_ACTIONS
  },
  handoffTextLength: {
    max: 2000,
    unit: "characters",
    meaning: "description and text of an action.",
    whenExceeded: INVALID_ACTIONS
  },
  handoffSelectorLength: {
    max: 500,
    unit: "characters",
    meaning: "selector of an action.",
    whenExceeded: INVALID_ACTIONS
  },
  handoffValidMs: {
    max: 3600000,
    unit: "ms",
    meaning: "From createdAt to expiresAt of a package.",
    whenExceeded: "Request a new one: nothing is kept here."
  },
  scheduleNextRuns: {
    max: 3,
    unit: "runs",
    meaning: "nextRuns of a preview.",
    whenExceeded: "Later ones are not shown."
  },
  scheduleTimezoneLength: {
    max: 64,
    unit: "characters",
    meaning: "timezone of a schedule.",
    whenExceeded: INVALID_SCHEDULE
  },
  scheduleRunAtLength: {
    max: 64,
    unit: "characters",
    meaning: "runAt of a schedule.",
    whenExceeded: INVALID_SCHEDULE
  },
  inFlightPerPayer: {
    max: 4,
    unit: "calls",
    meaning: "Paid calls of one payer at the same time, unconfirmed payments among them.",
    whenExceeded: "429 too_many_in_flight."
  },
  perMinutePerPayer: {
    max: 30,
    unit: "calls a minute",
    meaning: "Paid calls of one payer.",
    whenExceeded: RATE_LIMITED
  },
  verifiesInFlight: {
    max: 16,
    unit: "payments",
    meaning: "Payments being verified at the same time by one process, over all payers.",
    whenExceeded: "429 too_many_in_flight."
  },
  contractWalletPerMinute: {
    max: 5,
    unit: "failed calls a minute",
    meaning: "Failed paid calls of one client address in the name of one contract wallet.",
    whenExceeded: RATE_LIMITED
  },
  mismatchesPerPayment: {
    max: 10,
    unit: "requests",
    meaning: `Requests that a completed payment was not made for; after them it answers nothing else for ${MISMATCH_BLOCK_MS} ms.`,
    whenExceeded: "409 payment_reused."
  },
  decisionsPerMinute: {
    max: 10,
    unit: "decisions a minute",
    meaning: "Decisions of one client address.",
    whenExceeded: RATE_LIMITED
  },
  decisionsPerDay: {
    max: 200,
    unit: "decisions a day",
    meaning: "Decisions of one client address.",
    whenExceeded: RATE_LIMITED
  },
  authorizationSeconds: {
    min: 6,
    max: 300,
    unit: "s",
    meaning: "How far ahead of now the authorization of a payment ends (validBefore).",
    whenExceeded: "402 authorization_too_far_ahead, or authorization_expired at the minimum and below."
  }
};
var TRANSPARENCY = {
  mmdSeconds: 3600,
  checkpointMs: 5000
};

// src/domain/transparency/leaves.ts
var receiptLeafData = (jws) => sha2562(utf8(jws));

// src/domain/receipt/log-check.ts
var PATIENCE_SECONDS = 86400;
async function logCheck(jws, payload, log, keys, primitives) {
  const name = "receipt_logged";
  if (payload === null)
    return { name, ok: false };
  if (log.proof === null) {
    const { mmdSeconds } = logOf(payload) ?? TRANSPARENCY;
    const dueBy = payload.iat + Math.min(mmdSeconds, PATIENCE_SECONDS);
    if (payload.iat > log.now + PATIENCE_SECONDS)
      return { name, ok: false, details: { pending: false, dueBy, problem: "future" } };
    const pending = log.now <= dueBy;
    return { name, ok: pending, details: { pending, dueBy } };
  }
  const leafData = receiptLeafData(jws);
  const expected = { leafData, origin: logOf(payload)?.origin ?? null };
  const verdict = await verifyTlogProof(log.proof, expected, keys, primitives);
  if (!verdict.ok)
    return { name, ok: false, details: { pending: false, problem: verdict.problem } };
  const { origin, size } = verdict.checkpoint;
  return { name, ok: true, details: { pending: false, origin, index: verdict.index, size } };
}

// src/domain/receipt/verify.ts
async function verifyReceipt(facts, primitives, jws = parseJws(facts.jws)) {
  const payload = payloadIn(jws);
  const keyId = typeof jws?.header.kid === "string" ? jws.header.kid : null;
  const key = facts.keys.find((candidate) => candidate.keyId === keyId) ?? null;
  const checks = [
    same("receipt_present", facts.receiptId ?? payload?.receiptId ?? null, payload?.receiptId ?? null),
    { name: "signature_valid", ok: await signatureValid(jws, key, primitives) },
    keyCheck(key, payload),
    versionCheck(jws, payload),
    same("payload_job_id", facts.jobId ?? payload?.jobId ?? null, payload?.jobId ?? null),
    { name: "request_commitment_present", ok: isWhole(payload?.request._sd ?? []) },
    responseCheck(payload)
  ];
  if (facts.job !== null)
    checks.push(...jobChecks(facts.job, payload));
  if (facts.log !== null)
    checks.push(await logCheck(facts.jws, payload, facts.log, facts.keys, primitives));
  return {
    ok: checks.every((check) => check.ok),
    receiptId: payload?.receiptId ?? facts.receiptId,
    jobId: payload?.jobId ?? facts.jobId,
    keyId,
    signatureVerified: checks.some((check) => check.name === "signature_valid" && check.ok),
    checks
  };
}
function same(name, expected, receipt) {
  const held = receipt !== null && !(typeof receipt === "string" && hasLoneSurrogate(receipt));
  return { name, ok: held && sameJson(expected, receipt), details: { expected, receipt } };
}
function chainOf(events) {
  try {
    return eventChain(events);
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError)
      return null;
    throw error;
  }
}
async function signatureValid(jws, key, primitives) {
  if (jws === null || key === null)
    return false;
  const { alg, typ } = jws.header;
  if (alg !== "EdDSA" || typ !== RECEIPT_TYPE || "crit" in jws.header)
    return false;
  const publicKey = fromBase64url(key.x);
  if (publicKey?.length !== 32 || jws.signature.length !== 64)
    return false;
  return primitives.ed25519Verify(publicKey, utf8(jws.signingInput), jws.signature);
}
function keyCheck(key, payload) {
  const name = "key_valid_at_issue";
  if (key === null || payload === null)
    return { name, ok: false, details: { iat: payload?.iat ?? null, key: null } };
  const { notBefore, notAfter, compromisedAt } = key;
  return {
    name,
    ok: keyValidAt(key, payload.iat),
    details: { iat: payload.iat, notBefore, notAfter, compromisedAt }
  };
}
function versionCheck(jws, payload) {
  const claimed = typeof jws?.payload === "object" && jws.payload !== null && "v" in jws.payload ? jws.payload.v : null;
  const shown = typeof claimed === "number" ? claimed : null;
  return {
    name: "payload_version_supported",
    ok: payload !== null,
    details: { supported: RECEIPT_VERSIONS, receipt: shown }
  };
}
var isWhole = (commitments) => (commitments.length === 4 || commitments.length === 5) && new Set(commitments).size === commitments.length;
function responseCheck(payload) {
  const name = "response_commitment_present";
  if (payload === null)
    return { name, ok: false };
  const expected = payload.outcome.responseBytes === null ? 0 : 1;
  return same(name, expected, payload.outcome._sd.length);
}
function jobChecks(job, payload) {
  const committed = payload?.request._sd.includes(job.targetCommitment) ?? false;
  const last = job.events.at(-1);
  const recorded = {
    id: last?.stream ?? null,
    revision: last === undefined ? null : String(last.revision),
    chain: chainOf(job.events)
  };
  return [
    { name: "job_present", ok: true },
    same("receipt_links_job", job.jobId, payload?.jobId ?? null),
    same("job_links_receipt", job.receiptId, payload?.receiptId ?? null),
    same("status_matches", { status: job.status, responseStatus: job.responseStatus }, payload && { status: payload.outcome.status, responseStatus: payload.outcome.responseStatus }),
    same("method_matches", job.method, payload?.request.method ?? null),
    {
      name: "target_matches",
      ok: committed,
      details: { expected: job.targetCommitment, receipt: payload?.request._sd ?? null }
    },
    attemptsCheck(job, payload),
    matches("decision_matches", job.decisionId, payload?.decisionId ?? null, payload),
    matches("payment_matches", job.payment, payload?.payment ?? null, payload),
    same("event_chain_matches", recorded, payload?.stream ?? null)
  ];
}
function attemptsCheck(job, payload) {
  const recorded = [];
  for (const stored of job.events) {
    const event = decodeEvent(stored);
    if (event?.type === "AttemptMade")
      recorded.push(receiptAttempt(event.data));
  }
  const counted = same("attempts_match", job.attempts, payload?.attempts.length ?? null);
  if (!counted.ok || payload === null || sameJson(recorded, payload.attempts))
    return counted;
  return same("attempts_match", recorded, payload.attempts);
}
function matches(name, expected, receipt, payload) {
  return { name, ok: payload !== null && sameJson(expected, receipt), details: { expected, receipt } };
}

// src/domain/receipt/verify-document.ts
async function verifyDocument(document, { keys, log, receiptId, jobId, disclosures }, primitives) {
  const { jws, ...named } = document.kind === null ? NOTHING : document;
  const asked = { receiptId: receiptId ?? named.receiptId, jobId: jobId ?? named.jobId };
  const report = await verifyReceipt({ jws, ...asked, keys, job: null, log }, primitives);
  const payload = report.signatureVerified ? payloadOf(jws) : null;
  const differing = document.kind === null ? [] : differences(document);
  const vouched = report.ok && payload !== null;
  const opened = disclosures && (vouched ? openDisclosures(payload, disclosures) : []);
  return {
    ...report,
    ok: report.ok && differing.length === 0 && (opened?.every(({ ok }) => ok) ?? true),
    problem: document.kind === null ? `The text ${document.problem}: ${RECEIPT_FORMS}.` : null,
    payload,
    differences: differing,
    opened
  };
}
var NOTHING = { jws: "", receiptId: null, jobId: null };

// src/verify/given.ts
class Unusable extends TypeError {
}
function documentOf(receipt) {
  if (typeof receipt === "string")
    return readReceiptDocument(receipt);
  if (typeof receipt !== "object" || receipt === null)
    throw new Unusable("the receipt must be a text or parsed JSON");
  return receiptDocumentOf(receipt);
}
function keysOf(options) {
  const { keys: given } = options ?? {};
  if (given === undefined || given === null)
    throw new Unusable("keys are missing: the relay's JWK set, from its /.well-known/jwks.json");
  const keys = fromJwkSet(typeof given === "string" ? parsedJson(given) : given);
  if (keys === null)
    throw new Unusable("keys is no JWK set (RFC 7517)");
  if (keys.length === 0)
    throw new Unusable("keys holds no Ed25519 key");
  return keys;
}
function disclosureTexts(given) {
  if (given === undefined)
    return null;
  const texts = disclosuresOf(typeof given === "string" ? parsedJson(given) : given);
  if (texts !== null)
    return texts;
  throw new Unusable("disclosures must be an array of texts, or an execution response that has them");
}
function logFacts(proof, now = Math.floor(Date.now() / 1000)) {
  if (proof === undefined)
    return null;
  if (proof !== null)
    proofText(proof);
  if (!Number.isFinite(now))
    throw new Unusable("now must be a number of seconds");
  return { proof, now };
}
function proofText(proof) {
  if (typeof proof !== "string")
    throw new Unusable("the proof must be the text of a proof file");
  return proof;
}

// src/verify/primitives.ts
class CannotVerify extends Error {
  name = "CannotVerify";
}
var webPrimitives = {
  async ed25519Verify(publicKey, message, signature) {
    const key = await imported(publicKey);
    if (key === null)
      return false;
    return subtle().verify("Ed25519", key, Uint8Array.from(signature), Uint8Array.from(message));
  }
};
async function imported(publicKey) {
  try {
    return await subtle().importKey("raw", Uint8Array.from(publicKey), "Ed25519", false, ["verify"]);
  } catch (error) {
    if (error instanceof Error && error.name === "NotSupportedError")
      throw new CannotVerify("WebCrypto knows no Ed25519 here: a newer browser or runtime is needed.");
    if (error instanceof Error && error.name === "DataError")
      return null;
    throw error;
  }
}
function subtle() {
  const { crypto } = globalThis;
  if (crypto?.subtle === undefined)
    throw new CannotVerify("There is no WebCrypto here: browsers offer it only on pages from HTTPS or localhost.");
  return crypto.subtle;
}

// src/verify/verifier.ts
async function verifyReceipt2(receipt, options) {
  const facts = {
    keys: keysOf(options),
    disclosures: disclosureTexts(options.disclosures),
    log: logFacts(options.proof, options.now),
    receiptId: options.receiptId ?? null,
    jobId: options.jobId ?? null
  };
  return verifyDocument(documentOf(receipt), facts, webPrimitives);
}
async function verifyProof(proof, options) {
  const keys = keysOf(options);
  const text = proofText(proof);
  const document = documentOf(options.receipt);
  if (document.kind === null)
    return { ok: false, problem: "receipt" };
  const payload = payloadOf(document.jws);
  const leafData = receiptLeafData(document.jws);
  const origin = payload === null ? null : logOf(payload)?.origin ?? null;
  const verdict = await verifyTlogProof(text, { leafData, origin }, keys, webPrimitives);
  if (!verdict.ok)
    return verdict;
  const { size, origin: name, root, keyId } = verdict.checkpoint;
  return { ok: true, index: verdict.index, size, origin: name, root: toBase64(root), keyId };
}
export {
  CannotVerify,
  verifyProof,
  verifyReceipt2 as verifyReceipt
};
