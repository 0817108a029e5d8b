// For `bun run build:migrations`: tables of a generation → numbered migrations. The others have
// migrations/shared/drizzle.config.ts.
import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: ['./projections/*/table.ts', './projections/table.ts'],
  out: './migrations/generation',
  migrations: { prefix: 'index' },
});
