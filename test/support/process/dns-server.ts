// A DNS server over UDP on loopback with configured answers. Counts the queries.
import { createSocket } from 'node:dgram';
import type { AddressInfo } from 'node:net';
import { isIPv6 } from 'node:net';
import * as dnsPacket from 'dns-packet';

type Rcode = keyof typeof RCODES;

export type DnsAnswer = {
  /** IPv4 texts answer A questions, IPv6 texts AAAA questions. */
  readonly addresses?: readonly string[];
  /** NOERROR if absent. */
  readonly rcode?: Rcode;
  readonly delayMs?: number;
  /** No answer at all. */
  readonly drop?: boolean;
};

/**
 * Addresses, one answer, or a list of answers: the nth look-up of a name (counted apart for A and AAAA) takes the
 * nth, later ones the last.
 */
export type DnsAnswers = readonly string[] | DnsAnswer | readonly DnsAnswer[];

export type DnsQuestion = { readonly name: string; readonly type: string };

export type DnsServer = {
  /** `127.0.0.1:port`, as EGRESS_DNS_SERVERS takes it. */
  readonly address: string;
  readonly port: number;
  /** Every query received, in order, names in lower case. */
  readonly questions: DnsQuestion[];
  /** Number of queries for `name` with `type`. */
  asked(name: string, type?: 'A' | 'AAAA'): number;
  set(name: string, answers: DnsAnswers): void;
  /** From now on every question of this type is answered so: with this code, or not at all; null: as configured. */
  breakType(type: 'A' | 'AAAA', how: Rcode | 'silent' | null): void;
  close(): Promise<void>;
};

/** Names in lower case; `*` answers all others; a name with no answer at all is NXDOMAIN. TTL of all records: 0. */
export async function startDnsServer(
  options: { answers?: Readonly<Record<string, DnsAnswers>>; ttl?: number } = {},
): Promise<DnsServer> {
  const answers = new Map(Object.entries(options.answers ?? {}));
  const questions: DnsQuestion[] = [];
  const broken = new Map<string, DnsAnswer>();
  const timers = new Set<ReturnType<typeof setTimeout>>();
  const asked = (name: string, type = 'A') =>
    questions.filter((q) => q.name === name && q.type === type).length;

  const socket = createSocket('udp4');
  socket.on('message', (message, from) => {
    const query = dnsPacket.decode(message);
    const question = query.questions?.[0];
    if (question === undefined) return;
    const name = question.name.toLowerCase();
    questions.push({ name, type: question.type });
    const answer =
      broken.get(question.type) ?? pick(answers.get(name) ?? answers.get('*'), asked(name, question.type));
    if (answer.drop === true) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      socket.send(encode(query.id ?? 0, question, answer, options.ttl ?? 0), from.port, from.address);
    }, answer.delayMs ?? 0);
    timers.add(timer);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', () => resolve()));
  const { port } = socket.address() as AddressInfo;

  return {
    address: `127.0.0.1:${port}`,
    port,
    questions,
    asked,
    set: (name, next) => void answers.set(name, next),
    breakType(type, how) {
      if (how === null) broken.delete(type);
      else broken.set(type, how === 'silent' ? { drop: true } : { rcode: how });
    },
    close: () =>
      new Promise<void>((resolve) => {
        for (const timer of timers) clearTimeout(timer);
        socket.close(() => resolve());
      }),
  };
}

function pick(answers: DnsAnswers | undefined, nth: number): DnsAnswer {
  if (answers === undefined) return { rcode: 'NXDOMAIN' };
  if (!isList(answers)) return answers;
  if (answers.every((answer) => typeof answer === 'string')) return { addresses: answers };
  return answers[Math.min(nth, answers.length) - 1] as DnsAnswer;
}

function isList(answers: DnsAnswers): answers is readonly string[] | readonly DnsAnswer[] {
  return Array.isArray(answers);
}

const RCODES = { NXDOMAIN: 3, SERVFAIL: 2, NOTIMP: 4, REFUSED: 5 } as const;

function encode(id: number, question: dnsPacket.Question, answer: DnsAnswer, ttl: number): Buffer {
  const wanted = (answer.addresses ?? []).filter((address) => isIPv6(address) === (question.type === 'AAAA'));
  const type = question.type === 'AAAA' ? ('AAAA' as const) : ('A' as const);
  const isAddress = question.type === 'A' || question.type === 'AAAA';
  return dnsPacket.encode({
    type: 'response',
    id,
    flags:
      dnsPacket.RECURSION_DESIRED | dnsPacket.RECURSION_AVAILABLE | (answer.rcode ? RCODES[answer.rcode] : 0),
    questions: [question],
    answers: isAddress ? wanted.map((data) => ({ type, name: question.name, ttl, class: 'IN', data })) : [],
  });
}
