package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(t *testing.T, l net.Listener) Options {
	t.Helper()
	store, err := ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return Options{Fleet: "home", Version: "0.1.0", Store: store, Host: script.NewHost(script.Limits{}), Listener: l, LostAfter: time.Minute,
		Dial: func(string) (*grpc.ClientConn, error) { return nil, errors.New("no network") }, Log: slog.New(slog.DiscardHandler)}
}

func TestStartThatFailsLeavesNothingRunning(t *testing.T) {
	o := options(t, bufconn.Listen(1))
	if err := o.Store.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := Start(t.Context(), o); err == nil {
		c.Stop()
		t.Error("it started over a ledger that is closed")
	}
}

func TestWaitSaysWhyItCannotGoOn(t *testing.T) {
	l := bufconn.Listen(1)
	c, err := Start(t.Context(), options(t, l))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Wait(ctx); err != nil {
		t.Errorf("the end of the caller's wish is %v", err)
	}
	l.Close()
	if err := c.Wait(t.Context()); err == nil {
		t.Error("nobody says that the listener is gone")
	}
}

func TestDiscoveryIsNamedForPeople(t *testing.T) {
	for want, m := range map[string]*fleet.MDNS{"off": nil, "mdns on every usable interface": {}, "mdns on [eth0]": {Interfaces: []string{"eth0"}}} {
		if got := (&Coordinator{o: Options{Discover: m}}).discovery(); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
