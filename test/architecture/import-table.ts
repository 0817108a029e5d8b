// Who may import whom. The README shows the same table to people, and a test compares the two.

export type Row = {
  /** A room; `*` stands for each folder of that place, apart from its neighbours. */
  readonly room: string;
  /** Rooms. After a `*` a file of each room may follow; `(types)` is what vanishes at run time. */
  readonly rooms: readonly string[];
  /** Packages with all that is in them; `node:*` the runtime's modules. */
  readonly packages: readonly string[];
};

const row = (room: string, rooms: string, packages: string): Row => ({
  room,
  rooms: words(rooms),
  packages: words(packages),
});
const words = (text: string): string[] => text.split(', ').filter((word) => word !== '');

export const IMPORT_TABLE: readonly Row[] = [
  row('src/domain', '', '@sinclair/typebox'),
  row('src/ports', 'domain', ''),
  row('src/usecases', 'domain, ports', ''),
  row('src/discovery', 'domain', ''),
  row('src/adapters/audit', 'domain, ports', 'node:*'),
  row('src/adapters/buyer', 'domain, ports', '@x402/*, viem, node:*'),
  row('src/adapters/calendar', 'domain, ports', 'temporal-polyfill'),
  row('src/adapters/certificates', 'domain, ports', 'node:*'),
  row('src/adapters/event-log', 'domain, ports', '@eventstore/db-client, @grpc/grpc-js, node:*'),
  row('src/adapters/local-payments', 'domain, ports', '@foundry-rs/anvil, @x402/*, viem, node:*'),
  row('src/adapters/logging', 'domain, ports', 'pino, node:*'),
  row('src/adapters/outbound', 'domain, ports', 'ipaddr.js, node:*'),
  row('src/adapters/payments', 'domain, ports', '@x402/*, x402, viem, node:*'),
  row('src/adapters/quota', 'domain, ports', 'drizzle-orm, rate-limiter-flexible, node:*'),
  row('src/adapters/read-store', 'domain, ports', '@electric-sql/pglite, drizzle-orm, postgres, node:*'),
  row('src/adapters/runtime', 'domain, ports', 'node:*'),
  row('src/adapters/signing', 'domain, ports', '@sinclair/typebox, node:*'),
  row('src/adapters/telemetry', 'domain, ports', '@opentelemetry/*, prom-client, node:*'),
  row('projections/*', 'domain', 'drizzle-orm'),
  row('projections', 'domain, ports, projections/*', 'drizzle-orm, drizzle-kit'),
  row(
    'src/http',
    'domain, ports (types), usecases, discovery, projections/*/query',
    'elysia, @elysiajs/*, @modelcontextprotocol/sdk, @sinclair/typebox, d3-scale, d3-shape',
  ),
  row(
    'src/cli',
    'config, wiring, domain, ports, usecases, projections, projections/*',
    'cli-progress, commander, node:*',
  ),
  row('src/verify', 'domain', ''),
  row('src/config', 'domain', 'node:*'),
  row(
    'src/wiring',
    'config, domain, ports, usecases, discovery, adapters/*, projections, projections/*, http, verify',
    'node:*',
  ),
  row('src/main', 'config, wiring', 'node:process'),
];
