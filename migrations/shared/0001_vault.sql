CREATE TABLE "vault_keys" (
	"id" text PRIMARY KEY NOT NULL,
	"key" "bytea" NOT NULL,
	"until" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE INDEX "vault_keys_until" ON "vault_keys" USING btree ("until");