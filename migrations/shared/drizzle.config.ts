// For `drizzle-kit generate --config migrations/shared/drizzle.config.ts`, run at the root: the tables that belong to no
// generation → numbered migrations.
import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: ['./projections/generations.ts', './src/adapters/quota/postgres.ts'],
  out: './migrations/shared',
  migrations: { prefix: 'index' },
});
