// For `drizzle-kit generate --config projections/drizzle.config.ts`, run at the root: tables → numbered migrations.
import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: [
    './projections/*/table.ts',
    './projections/checkpoint.ts',
    './projections/retention.ts',
    './projections/versions.ts',
    './src/adapters/quota/table.ts',
  ],
  out: './migrations',
  migrations: { prefix: 'index' },
});
