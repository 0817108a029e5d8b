// What relay pay prints of a purchase: as text, and as JSON.
import type { CallResult, PurchaseEvidence } from '#src/app/buyer.ts';
import { fromUtf8, toBase64 } from '#src/domain/encoding.ts';
import { iso } from '#src/lib/iso.ts';
import { heading, mark, paint, printError, row, shown } from './terminal.ts';
import { checkLines, factLines } from './verify.ts';

export const isGood = ({ outcome }: CallResult): boolean => outcome === 'not_paid' || outcome === 'delivered';

/** With the payment that was signed, if there is one. */
export function reportWait(why: string, ms: number): void {
  printError(`${why}; the same request is sent again in ${Math.ceil(ms / 1000)} s`);
}

/** One line that names the member that differs. */
export const errorLine = ({ member, expected, actual }: NonNullable<CallResult['error']>): string =>
  `${shown(member)}: expected ${shown(expected)}, received ${shown(actual)}`;

/** The payment header is included only while it can still return the result. */
export function resultJson(result: CallResult, { showsResponse }: Pick<How, 'showsResponse'>) {
  const { evidence, payment, error, signedMicroUsd: _signed, ...rest } = result;
  const { job, receipt, disclosures, checkpoint, idempotentReplay, links } = evidence?.execution ?? NONE;
  const { name, value } = payment?.header ?? {};
  const header = result.outcome === 'unfinished' && name !== undefined && { [name]: value };
  return {
    ok: isGood(result),
    ...rest,
    error: error && { member: error.member, expected: error.expected, actual: error.actual },
    payment: payment && {
      payer: payment.authorization.from,
      nonce: payment.authorization.nonce,
      validBefore: validUntil(payment),
      payloadHash: payment.payloadHash,
      ...(header && { header }),
    },
    settlement: evidence?.settlement ?? null,
    job,
    receipt,
    disclosures,
    checkpoint,
    idempotentReplay,
    earlierPayment: evidence?.earlierPayment ?? null,
    verification: evidence?.verification ?? null,
    facts: evidence?.facts ?? [],
    links,
    ...(showsResponse && { response: responseJson(evidence?.response ?? null) }),
  };
}

/** As the relay returns it: text if the bytes are UTF-8. */
function responseJson(response: PurchaseEvidence['response']) {
  if (response === null) return null;
  const { status, headers, body: bytes, truncated } = response;
  const text = fromUtf8(bytes);
  const [encoding, body] = text === null ? ['base64', toBase64(bytes)] : ['utf8', text];
  return { status, headers, encoding, body, truncated };
}

const NONE = {
  job: null,
  receipt: null,
  disclosures: null,
  checkpoint: null,
  idempotentReplay: null,
  links: {},
};

type PaymentMade = NonNullable<CallResult['payment']>;

const validUntil = ({ authorization }: PaymentMade): string => iso(Number(authorization.validBefore) * 1000);

/** How the command was called. `key`: the idempotency key of the call. */
export type How = {
  readonly key: string | undefined;
  readonly hasPayee: boolean;
  readonly hasLedger: boolean;
  readonly showsResponse: boolean;
};

/** The offer, compared with the limits. */
export const policyLines = (relay: string, policy: CallResult['policy']): readonly string[] =>
  policy.length === 0
    ? []
    : [
        heading(`Offer of ${relay}`),
        ...policy.map(
          ({ name, ok, expected, offered }) =>
            `  ${mark(ok)} ${name.padEnd(12)}${shown(offered)}${ok ? '' : `, expected ${shown(expected)}`}`,
        ),
      ];

export function resultLines(result: CallResult, how: How): readonly string[] {
  const { relay, policy, evidence, payment, terms, error, outcome } = result;
  const lines = [...policyLines(relay, policy)];
  if (!how.hasPayee && terms !== null)
    lines.push('', `  No one is paid without --pay-to. To pay ${shown(terms.payTo)}, name it with --pay-to.`);
  if (evidence !== null) lines.push(...evidenceLines(evidence));
  if (evidence !== null && how.showsResponse) lines.push('', ...responseLines(evidence.response));
  const advice = payment === null ? [] : adviceOf(outcome, payment, how, evidence);
  const text = paint(isGood(result) ? 'green' : 'red', OUTCOME_TEXT[outcome]);
  const why = error === null ? '' : ` ${errorLine(error)}`;
  return [
    ...lines,
    ...(advice.length === 0 ? [] : ['', ...advice.map((line) => `  ${line}`)]),
    '',
    `${text}${why}`,
  ];
}

function responseLines(response: PurchaseEvidence['response']): readonly string[] {
  if (response === null)
    return ['  No answer of the target: the relay returns one in its first answer alone, if at all.'];
  const { status, headers, body, truncated } = response;
  const text = fromUtf8(body);
  const size = `${body.length} bytes${truncated === true ? ', cut' : ''}`;
  return [
    heading('Answer of the target, as the receipt commits to it'),
    row('status', `${status}, ${size}`),
    ...Object.entries(headers).map(([name, value]) => row(shown(name), shown(value))),
    ...(text === null ? [`  ${toBase64(body)}`] : text.split('\n').map((line) => `  ${shown(line)}`)),
  ];
}

/** Followed by the member that differs, if there is one. */
const OUTCOME_TEXT: Readonly<Record<CallResult['outcome'], string>> = {
  delivered: 'Delivered.',
  target_failed: 'The target failed. The attempt was paid for; its receipt states what happened.',
  unverified: 'NOT verified as your purchase:',
  policy_refused: 'Not paid:',
  not_paid: 'The offer is within your limits. Nothing was paid.',
  relay_refused: 'The relay refused, and states that nothing was sent to the target:',
  unfinished: 'No final answer, and the payment may be spent:',
};

function adviceOf(
  outcome: CallResult['outcome'],
  payment: PaymentMade,
  { key, hasLedger }: How,
  evidence: PurchaseEvidence | null,
): readonly string[] {
  const { name, value } = payment.header;
  const until = validUntil(payment);
  if (evidence?.earlierPayment && outcome !== 'unverified')
    return [
      'The receipt is of an earlier payment of yours with this --key. The payment that was signed now is not needed;',
      `a relay that lies could charge it until ${until}. With --ledger a repeat signs no second payment.`,
    ];
  if (outcome === 'unfinished' && hasLedger)
    return [
      `Run the same command again with --key ${shown(key)}: it presents the same payment, never a second one.`,
    ];
  if (outcome === 'unfinished')
    return [
      `Only this header returns the result that you paid for: ${name}: ${value}`,
      `Send the same request with it again. The same command with --key ${shown(key)} signs a second payment, which an`,
      'honest relay does not charge.',
    ];
  if (outcome === 'relay_refused' || outcome === 'unverified')
    return [
      `The signed payment can be charged until ${until}. Before you order again with another --key, look`,
      `on the chain whether its nonce ${payment.authorization.nonce} is used.`,
    ];
  return [];
}

function evidenceLines({ execution, settlement, verification, facts }: PurchaseEvidence): readonly string[] {
  const { job, receipt, idempotentReplay } = execution;
  const { responseStatus, errorCategory, attempts } = job;
  return [
    '',
    heading('Result'),
    row(
      'payment',
      shown(`${settlement?.payer ?? 'unknown'}, transaction ${settlement?.transaction ?? 'unknown'}`),
    ),
    row(
      'job',
      shown(`${job.id}, ${job.status}, answer ${responseStatus ?? errorCategory}, attempts: ${attempts}`),
    ),
    row(
      'receipt',
      shown(`${receipt.id}${idempotentReplay ? ', replayed: nothing was sent or charged again' : ''}`),
    ),
    '',
    heading('Verified offline'),
    ...checkLines(verification),
    ...factLines(facts),
  ];
}
