package ledger

import "log/slog"

// Options says where a ledger is.
type Options struct {
	Dir string       // the ledger's folder, made if missing, owner-only
	Log *slog.Logger // nil discards
}
