// The set-up of a suite of paid calls to one service.
import { after, before } from 'node:test';
import type { Environment, Service } from '#test/support/process/service.ts';
import { makePaidWorld, type PaidWorld } from '#test/support/world/paid-world.ts';

/** Call it in a `describe`: its tests can use what it returns, and it ends after them. */
export function paidSuite(env: Environment = {}): { readonly paid: PaidWorld; service: Service } {
  const it = {} as { paid: PaidWorld; service: Service };
  before(async () => {
    it.paid = await makePaidWorld();
    it.service = await it.paid.start(env);
  });
  after(() => it.paid?.end());
  return it;
}
