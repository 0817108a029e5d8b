ALTER TABLE "vault_keys" ADD COLUMN "sealed" "bytea";--> statement-breakpoint
ALTER TABLE "vault_keys" ADD COLUMN "amount" numeric;