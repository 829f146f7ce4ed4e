package ledger_test

import (
	"database/sql"
	"testing"
)

// execSQL changes a database behind the ledger's back.
func execSQL(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	_, err = db.Exec(query)
	must(t, err)
	must(t, db.Close())
}
