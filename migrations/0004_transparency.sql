CREATE TABLE "transparency_checkpoint" (
	"id" text PRIMARY KEY NOT NULL,
	"size" bigint NOT NULL,
	"note" text NOT NULL,
	"signed_at" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "transparency_leaves" (
	"id" text PRIMARY KEY NOT NULL,
	"leaf_index" bigint NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "transparency_tiles" (
	"id" text PRIMARY KEY NOT NULL,
	"hashes" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "transparency_tree" (
	"id" text PRIMARY KEY NOT NULL,
	"size" bigint NOT NULL,
	"edge" text NOT NULL,
	"position" text NOT NULL
);
--> statement-breakpoint
ALTER TABLE "checkpoints" ADD COLUMN "event" text;