package ledger_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childRole is set in the processes that a test starts from its own binary, to be killed or starved.
const childRole = "LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childRole) == "writer" {
		writeUntilKilled()
		return
	}
	goleak.VerifyTestMain(m)
}
