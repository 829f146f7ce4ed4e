package cli

import (
	"errors"
	"net"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// This file is the one place where listeners and credentials are made. The trust issue replaces exactly that.

// maxMessage is the largest gRPC message either side takes, bytes: bundles and reports; bodies are streamed or bounded.
const maxMessage = 32 << 20

// How soon a dead peer is noticed: a ping after pingAfter of silence, an end when no answer comes within pingWait.
const (
	pingAfter = 5 * time.Second
	pingWait  = 5 * time.Second
	// clientPing is the least that the gRPC client allows.
	clientPing = 10 * time.Second
)

// listen opens a listener for one of our services. Leaving loopback needs insecure, because there are no certificates yet.
// flag is what the user can give to choose another address.
func (a *app) listen(addr, flag string, insecure bool) (net.Listener, error) {
	drop := []string{flag + "="}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, apierr.New(apierr.InvalidArgument, "%s: want host:port, got %q", flag, addr)
	}
	if !loopback(host) && !insecure {
		return nil, apierr.New(apierr.InvalidArgument, "listening on %s would let anyone on the network use this machine: there are no certificates yet", addr).
			WithNext(a.commandWithout(nil, "--insecure-lan")+"  # when everybody on that network is trusted", a.commandWithout(drop, flag, "127.0.0.1:0"))
	}
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, apierr.New(apierr.Conflict, "address %s is in use by another program", addr).
			WithNext(a.commandWithout(drop, flag, net.JoinHostPort(host, "0"))+"  # takes a free port", "loopkeeper nodes  # in case loopkeeper runs there already")
	case err != nil:
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "listen on %s", addr).WithNext(a.commandWithout(drop, flag, "127.0.0.1:0"))
	}
	return l, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// serverOptions are those of every gRPC server of ours.
func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingWait}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter, PermitWithoutStream: true}),
	}
}

// dial prepares a connection to one of our services; it connects when it is used. A proxy is never asked: peers are on
// this machine or in this house.
func dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: clientPing, Timeout: pingWait, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 3 * time.Second,
			Backoff: backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}}))
}
