// For `bun run build:migrations`: the tables that belong to no generation → numbered migrations.
import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: [
    './projections/generations.ts',
    './src/adapters/quota/postgres.ts',
    './src/adapters/vault/postgres.ts',
  ],
  out: './migrations/shared',
  migrations: { prefix: 'index' },
});
