// What an event type consists of, and the field schemas that events share. A released value is never removed.
import {
  type Static,
  type TLiteral,
  type TObject,
  type TProperties,
  type TUnion,
  Type,
} from '@sinclair/typebox';

/** The kinds of streams; `events.ts` names them. */
export type StreamKind =
  | 'job'
  | 'decision'
  | 'payment'
  | 'claim'
  | 'chain'
  | 'refund'
  | 'schedule'
  | 'keys'
  | 'receiptLog'
  | 'logWitnesses';

/** The members of each version of an event type, all but the version itself. */
type Versions = Readonly<Record<number, TProperties>>;
type Newest<V> = 3 extends keyof V ? 3 : 2 extends keyof V ? 2 : 1;
type Schemas<V extends Versions> = { readonly [N in keyof V & number]: TObject<{ v: TLiteral<N> } & V[N]> };
type Facts<M> = M extends TProperties ? Static<TObject<M>> : never;
type FactsOf<V, W> = W extends keyof V ? Facts<V[W]> : never;

/** The data of an event type in the version that is written: what the domain works with. */
export type EventData<
  D extends { readonly versions: Readonly<Record<number, TObject>>; readonly written: number },
> = Static<D['versions'][D['written']]>;

type Upcasts<V, W> = {
  readonly [N in keyof V as N extends W ? never : N]: (recorded: Facts<V[N]>) => FactsOf<V, W>;
};

/**
 * An event type of several versions. A released one never changes: a new member, optional or not, is a new version.
 * `stream`: the kind of stream that events of this type are stored in. `time`: the member with the time at which the relay
 * says that it happened. `upcast`: from each other version to the one that is written. `written`: the newest if absent; of a
 * version that the next release writes, this release declares the one before, and an upcast that leaves the new members out.
 */
export function declareVersions<
  S extends StreamKind,
  V extends Versions,
  T extends keyof FactsOf<V, W> & string,
  W extends number = Newest<V>,
>(stream: S, time: T, versions: V, upcast: Upcasts<V, W>, written?: W) {
  const schemas = Object.entries(versions).map(
    ([v, members]) => [Number(v), Type.Object({ v: Type.Literal(Number(v)), ...members }, strict)] as const,
  );
  return {
    stream,
    time,
    versions: Object.fromEntries(schemas) as unknown as Schemas<V>,
    written: (written ?? Math.max(...schemas.map(([v]) => v))) as W,
    upcast,
  };
}

/** `facts` as an event of this type is written. */
export const writtenAs = ({ written }: { readonly written: number }, facts: object) => ({
  v: written,
  ...facts,
});

/** An event type of one version. */
export const declareEvent = <S extends StreamKind, M extends TProperties, T extends keyof Facts<M> & string>(
  stream: S,
  time: T,
  members: M,
) => declareVersions(stream, time, { 1: members }, {});

export const strict = { additionalProperties: false };
export const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()]);
export const oneOf = <const L extends string[]>(...texts: L) =>
  Type.Union(texts.map((text) => Type.Literal(text))) as unknown as TUnion<{
    [K in keyof L]: TLiteral<L[K]>;
  }>;
/** UTC, RFC 3339, milliseconds. */
export const Instant = Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' });
export const Text = Type.String();
/** A salted commitment: base64url(SHA-256(disclosure)), as in SD-JWT. */
export const Commitment = Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' });
export const Hex = Type.String({ pattern: '^[0-9a-f]{64}$' });
export const Count = Type.Integer({ minimum: 0 });
/** Atomic units of a token, decimal. */
export const Units = Type.String({ pattern: '^\\d+$' });
/** Of a transaction or block: `0x`, lower case. */
export const ChainHash = Type.String({ pattern: '^0x[0-9a-f]{64}$' });
export const HttpStatus = Type.Integer({ minimum: 100, maximum: 999 });
export const Millis = Nullable(Type.Number({ minimum: 0 }));

export const Method = oneOf('POST', 'PUT', 'PATCH', 'DELETE');
export type Method = Static<typeof Method>;

export const Mode = oneOf('demo', 'x402');
export type Mode = Static<typeof Mode>;

export const Route = oneOf('execute/webhook', 'execute/guided-webhook');
export type Route = Static<typeof Route>;

/** Whether a response has more bytes than were read. */
export const Truncated = Type.Union([Type.Boolean(), Type.Literal('unknown')]);
export type Truncated = Static<typeof Truncated>;

/** How far an attempt came before it ended. */
export const Phase = oneOf('dns', 'connect', 'tls', 'request', 'headers', 'body');
export type Phase = Static<typeof Phase>;

/** Whether the target may have received the request. */
export const Sent = oneOf('no', 'maybe', 'yes');
export type Sent = Static<typeof Sent>;

export const ErrorCategory = oneOf(
  'timeout',
  'dns_error',
  'connect_error',
  'tls_error',
  'protocol_error',
  'truncated_response',
  'target_redirect',
  'target_rate_limited',
  'target_client_error',
  'target_server_error',
  'target_refused',
  'interrupted_unknown',
  'not_executed',
);
export type ErrorCategory = Static<typeof ErrorCategory>;

export const Timings = Type.Object(
  { dnsMs: Millis, connectMs: Millis, tlsMs: Millis, ttfbMs: Millis, totalMs: Type.Number({ minimum: 0 }) },
  strict,
);
export type Timings = Static<typeof Timings>;

/** Facts of a settled payment; never its signature. `amount`: atomic units of `asset`. */
export const PaymentFacts = Type.Object(
  {
    scheme: Text,
    network: Text,
    asset: Text,
    amount: Units,
    payTo: Text,
    payer: Text,
    /** null if the facilitator reported the settlement without its hash. */
    transaction: Nullable(Text),
    payloadHash: Hex,
  },
  strict,
);
export type PaymentFacts = Static<typeof PaymentFacts>;

/** The run of a schedule that a job executes. `lateByMs`: from the due time to the start of the job. */
export const ScheduledRun = Type.Object(
  { id: Text, run: Type.Integer({ minimum: 1 }), dueAt: Instant, lateByMs: Count },
  strict,
);
export type ScheduledRun = Static<typeof ScheduledRun>;

/** Commitments of the request, by the fixed names of the receipt. */
export const RequestCommitments = Type.Object(
  {
    target_url: Commitment,
    target_origin: Commitment,
    header_names: Commitment,
    request_body_sha256: Commitment,
    idempotency_key: Nullable(Commitment),
  },
  strict,
);
export type RequestCommitments = Static<typeof RequestCommitments>;
