// What each request takes of what paid calls need, and what bounds it for one client address. Declared for every route and
// every MCP tool; DEPLOYING.md has the list, and test/discovery/request-costs.test.ts holds it against what is served.
import { mcpTools } from '#src/discovery/documents/mcp.ts';
import {
  DOCUMENT_ROUTES,
  LOG_ROUTES,
  ROUTES,
  type RouteFacts,
  SCHEDULE_ROUTES,
  VERIFIER_ROUTES,
  WELL_KNOWN_ROUTES,
} from '#src/discovery/routes.ts';
import { FACTORS, LIMITS } from '#src/domain/limits.ts';
import { SCHEDULE_LIMITS } from '#src/domain/schedule/limits.ts';

/**
 * How one client address is bounded. `perMinute`: in shares of RATE_LIMIT_PER_MINUTE, or as it is. `reads`: by
 * RATE_LIMIT_READS_PER_MINUTE, and the pace of all reads. `paced`: by the pace of all reads alone. `none`: not bounded.
 */
type Counted =
  | { readonly by: 'reads' | 'paced' | 'none' }
  | { readonly by: 'rate'; readonly shares: number }
  | { readonly by: 'rate'; readonly perMinute: number };

export type RequestCost = {
  readonly routes: readonly RouteFacts[];
  /** Of a route whose requests cost differently. */
  readonly when?: string;
  readonly counted: Counted;
  /** Further bounds, by their names in LIMITS and SCHEDULE_LIMITS. */
  readonly limits?: Readonly<Record<string, number>>;
  /** Of the places and streams that paid calls need too. */
  readonly takes: string;
  readonly cost: string;
};

const RATE: Counted = { by: 'rate', shares: 1 };
const GENEROUS: Counted = { by: 'rate', shares: FACTORS.generousRate };
const READS: Counted = { by: 'reads' };
const PACED: Counted = { by: 'paced' };
const PAID = [ROUTES.execute, ROUTES.executeGuided];
const BUYING = [SCHEDULE_ROUTES.createSchedule, SCHEDULE_ROUTES.fundRun];
/** From this MAX_IN_FLIGHT on two payments are verified at once. */
export const TWO_VERIFIED_FROM = 5;
const FREE_LOOK_UP = 'a DNS look-up of the free ones';

export const REQUEST_COSTS: readonly RequestCost[] = [
  {
    routes: PAID,
    when: 'without a payment',
    counted: RATE,
    takes: 'nothing',
    cost: 'the offer, signed; no event is read',
  },
  {
    routes: PAID,
    when: 'with a payment that is refused',
    counted: RATE,
    limits: {
      verifiesPerClient: 2,
      verifiesPerPayer: 1,
      contractWalletPerMinute: 5,
      walletQuestionsPerMinute: 30,
      inFlightPerPayer: 4,
      unchargedPerDay: 200,
    },
    takes: `a slot while it is verified or waits, at most ${LIMITS.verifiesInFlight.max + LIMITS.verifiesWaiting.max} of all addresses; a DNS look-up before, of at most half of their places; a verify place (below ${TWO_VERIFIED_FROM} in \`MAX_IN_FLIGHT\` there is one, which one address may hold), in which the node is asked too if the payment was rejected before; where the signature is not by the payer’s key, a question to the node; one that is refused when it is settled has written at most 4,000 bytes of events`,
    cost: 'reads the streams of the payment, its key and its job; asks the facilitator',
  },
  {
    routes: PAID,
    when: 'with a payment made before',
    counted: RATE,
    limits: { mismatchesPerPayment: 10, verifiesPerClient: 2, verifiesPerPayer: 1, inFlightPerPayer: 4 },
    takes:
      'nothing where the job has ended or runs; before it starts, a slot, and a verify place while the node is asked what became of the payment',
    cost: 'reads the streams of the payment, its key and its job; asks the node',
  },
  {
    routes: [ROUTES.decide],
    counted: { by: 'rate', perMinute: LIMITS.decisionsPerMinute.max },
    limits: { decisionsPerDay: 200, freeLookUpsPerClient: 32 },
    takes: `${FREE_LOOK_UP}; writes one event of at most 4,000 bytes`,
    cost: 'figures that are computed once a step of the projection',
  },
  {
    routes: [ROUTES.checkPolicy, ROUTES.schedulePreview],
    counted: RATE,
    limits: { freeLookUpsPerClient: 32 },
    takes: FREE_LOOK_UP,
    cost: 'the body; no event is read',
  },
  {
    routes: [ROUTES.handoff],
    counted: RATE,
    limits: { freeLookUpsPerClient: 32 },
    takes: 'two DNS look-ups of the free ones',
    cost: 'the body; no event is read',
  },
  {
    routes: BUYING,
    when: 'without a payment',
    counted: RATE,
    takes: 'nothing',
    cost: 'the offer, signed, from a row or the request',
  },
  {
    routes: BUYING,
    when: 'with a payment',
    counted: RATE,
    limits: {
      ticketsPerPayer: 100,
      ticketsPerSchedule: 100,
      schedulesPerPayer: 50,
      schedulesPerClient: 200,
      unchargedPerDay: 200,
      verifiesPerClient: 2,
      verifiesPerPayer: 1,
    },
    takes:
      'a slot and a verify place while it is verified, and a verify place while the node is asked for what it is worth; writes the schedule and the ticket of its run, which counts as not charged if it is cancelled or its payment is refused',
    cost: 'reads the stream of the schedule, of at most 1,000 runs',
  },
  {
    routes: [SCHEDULE_ROUTES.schedule],
    counted: RATE,
    takes: 'nothing',
    cost: 'a row',
  },
  {
    routes: [SCHEDULE_ROUTES.cancelSchedule],
    counted: RATE,
    takes: 'nothing; writes once, with the token of the schedule only',
    cost: 'reads the stream of the schedule, of at most 1,000 runs',
  },
  {
    routes: [ROUTES.mcp, ROUTES.mcpSlash],
    counted: GENEROUS,
    takes: 'what the route of its tool takes, by the bounds of that route',
    cost: 'the message',
  },
  {
    routes: [ROUTES.canary, ROUTES.canaryPost],
    counted: GENEROUS,
    takes: 'nothing',
    cost: 'a hash of the body',
  },
  {
    routes: [
      ROUTES.decision,
      ROUTES.recentDecisions,
      ROUTES.job,
      ROUTES.receipt,
      ROUTES.recentProofs,
      ROUTES.monitoring,
      ROUTES.trust,
      ROUTES.frontPage,
      ROUTES.statusPage,
    ],
    counted: READS,
    takes: 'nothing',
    cost: 'rows; lists and figures once a step of the projection',
  },
  {
    routes: [
      ROUTES.verifyJob,
      ROUTES.verifyReceipt,
      ROUTES.proofPage,
      ROUTES.proofBadge,
      ...Object.values(LOG_ROUTES),
    ],
    counted: READS,
    takes: 'nothing',
    cost: 'rows, and the stream of one job, of at most 3 attempts',
  },
  {
    routes: [
      ...Object.values(DOCUMENT_ROUTES),
      ROUTES.discoveryMetadata,
      ...Object.values(WELL_KNOWN_ROUTES),
      ...Object.values(VERIFIER_ROUTES),
      ROUTES.docsPage,
      ROUTES.verifyPage,
      ROUTES.verifyScript,
      ROUTES.styleSheet,
    ],
    counted: PACED,
    takes: 'nothing',
    cost: 'made once, answered from memory',
  },
  {
    routes: [ROUTES.health, ROUTES.live, ROUTES.metrics],
    counted: { by: 'none' },
    takes: 'nothing',
    cost: '`/health` and `/metrics`: one question to each part at a time, of all callers, kept for 250 ms; facilitator and node once in 10 s',
  },
];

export const EVERY_LIMIT: Readonly<Record<string, { readonly max: number }>> = {
  ...LIMITS,
  ...SCHEDULE_LIMITS,
};

// ── as DEPLOYING.md has it ─────────────────────────────────────────────────────────────────────────────────

const SCHEDULES_ON = { schedules: { horizonDays: 30 } };
export const TOOLS = mcpTools(SCHEDULES_ON);

const codes = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');

function requestText({ routes, when }: RequestCost): string {
  const tools = TOOLS.filter(({ route }) => routes.includes(route)).map(({ name }) => name);
  const by = tools.length === 0 ? '' : ` (as tools: ${codes(tools)})`;
  return `${codes(routes.map(({ method, path }) => `${method} ${path}`))}${by}${when === undefined ? '' : `, ${when}`}`;
}

function countedText(counted: Counted): string {
  switch (counted.by) {
    case 'reads':
      return '`RATE_LIMIT_READS_PER_MINUTE`, all of these together';
    case 'paced':
      return `none; ${LIMITS.readsBesideExecutions.max} a second of all addresses while calls are executed`;
    case 'none':
      return 'none';
    case 'rate':
      if ('perMinute' in counted) return `${counted.perMinute} a minute`;
      return counted.shares === 1
        ? '`RATE_LIMIT_PER_MINUTE`'
        : `${counted.shares} × \`RATE_LIMIT_PER_MINUTE\``;
  }
}

function boundText({ counted, limits = {} }: RequestCost): string {
  const named = Object.entries(limits).map(([name, max]) => `\`${name}\` ${max}`);
  return [countedText(counted), ...named].join('; ');
}

/** A list, because the cells of a table would be too long. */
export function costList(): string {
  return REQUEST_COSTS.flatMap((row) => [
    wrapped('- ', `${requestText(row)}:`),
    wrapped('  ', `takes ${row.takes}.`),
    wrapped('  ', `Bound: ${boundText(row)}. Cost: ${row.cost}.`),
  ]).join('\n');
}

/** Lines of at most 380 characters, each ended by a comma, a semicolon or a full stop: never within code. */
function wrapped(indent: string, text: string): string {
  const [first = '', ...more] = text.split(/(?<=[,;.]) /);
  const lines = [indent + first];
  for (const piece of more) {
    const longer = `${lines.at(-1)} ${piece}`;
    if (longer.length > 380) lines.push(`  ${piece}`);
    else lines[lines.length - 1] = longer;
  }
  return lines.join('\n');
}
