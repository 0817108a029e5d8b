ALTER TABLE "vault_keys" ADD COLUMN "holder" text;--> statement-breakpoint
CREATE INDEX "vault_keys_holder" ON "vault_keys" USING btree ("holder");