CREATE TABLE "read_model_generations" (
	"schema" text PRIMARY KEY NOT NULL,
	"generation" text NOT NULL,
	"log" text NOT NULL,
	"state" text NOT NULL,
	"used_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "quota_windows" (
	"key" text PRIMARY KEY NOT NULL,
	"points" integer NOT NULL,
	"expire" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE UNIQUE INDEX "read_model_generations_current" ON "read_model_generations" USING btree ("generation") WHERE "read_model_generations"."state" = 'current';--> statement-breakpoint
CREATE INDEX "quota_windows_expire" ON "quota_windows" USING btree ("expire");