// The payment protocol of fakes-protocol.ts with headers that can be read on the wire: a payload that reads `paid` is a
// payment, a challenge is whole, and the two settlement headers differ.
import type { Route } from '#src/domain/event-fields.ts';
import type { ReadHeader } from '#src/ports/payment-protocol.ts';
import { type FakeProtocol, fakeProtocol } from '#test/support/chain/fakes-protocol.ts';

export type WiredProtocol = FakeProtocol & {
  /** As version 2 asks for a payment. */
  required(route: Route, error: string): Record<string, unknown>;
};

export function wiredProtocol(): WiredProtocol {
  const fake = fakeProtocol();
  const required: WiredProtocol['required'] = (route, error) => {
    const { resource, accepts, extensions } = fake.askedFor[route];
    return { x402Version: 2, error, resource: { url: resource }, accepts, extensions };
  };
  return {
    ...fake,
    required,
    read: (header, client) => fake.read((name) => plain(name, header), client),
    async challenge(ask) {
      const { body } = await fake.challenge(ask);
      return { headers: { 'payment-required': wired(required(ask.route, ask.reason)) }, body };
    },
    async settled(settlement) {
      await fake.settled(settlement);
      const reported = (header: string) => wired({ ...settlement, header });
      const twin = settlement.x402Version === 1 ? { 'x-payment-response': reported('v1') } : {};
      return { 'payment-response': reported('v2'), ...twin };
    },
  };
}

/** `paid` where the payload reads so under the header of its own version. */
function plain(name: string, header: ReadHeader): string | null {
  const text = header(name);
  if (text === null) return null;
  const { x402Version, payload } = parsed(Buffer.from(text, 'base64').toString('utf8'));
  const version = name === 'X-PAYMENT' ? 1 : 2;
  return payload === 'paid' && x402Version === version ? 'paid' : 'other';
}

function parsed(text: string): { readonly x402Version?: unknown; readonly payload?: unknown } {
  try {
    return { ...JSON.parse(text) };
  } catch {
    return {};
  }
}

const wired = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
