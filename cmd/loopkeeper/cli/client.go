package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// client is a connection to the coordinator, known to have answered.
type client struct {
	coordinatorv1.CoordinatorServiceClient
	coordinatorv1.SteerServiceClient
	coordinatorv1.WorkflowServiceClient
	coordinatorv1.ScheduleServiceClient
	coordinatorv1.ToolServiceClient
	conn *grpc.ClientConn
	info *coordinatorv1.InfoResponse
}

func (c *client) close() { _ = c.conn.Close() } // nothing is lost by it

// answerTime is how long a coordinator may take to say who it is, comeUpTime how long one may take to start: every command waits for
// one that comes up, be it restarted by a person or by the system.
const (
	answerTime = 10 * time.Second
	comeUpTime = 3 * time.Second
)

// connect reaches the coordinator.
func (a *app) connect(ctx context.Context) (*client, error) {
	answered := a.slow("waiting for the coordinator at " + a.serverAddress())
	defer answered()
	end := time.Now().Add(comeUpTime)
	for {
		addr := a.serverAddress() // one that starts may have another one than before
		c, err := reach(ctx, addr)
		if codeOf(err) != apierr.Unavailable {
			return c, a.notReached(addr, err)
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if time.Now().After(end) {
			return nil, a.notReached(addr, err)
		}
		pause := time.NewTimer(comeUpTime / 20)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

// reach asks once who answers at an address.
func reach(ctx context.Context, addr string) (*client, error) {
	conn, err := dial(addr)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "reach the coordinator at %s", addr)
	}
	c := &client{CoordinatorServiceClient: coordinatorv1.NewCoordinatorServiceClient(conn),
		SteerServiceClient: coordinatorv1.NewSteerServiceClient(conn), WorkflowServiceClient: coordinatorv1.NewWorkflowServiceClient(conn),
		ScheduleServiceClient: coordinatorv1.NewScheduleServiceClient(conn), ToolServiceClient: coordinatorv1.NewToolServiceClient(conn), conn: conn}
	hello, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if c.info, err = c.Info(hello, &coordinatorv1.InfoRequest{}); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// notReached says what to do when there is nobody, or nobody who understands.
func (a *app) notReached(addr string, err error) error {
	switch {
	case err == nil:
		return nil
	case codeOf(err) == apierr.Unavailable:
		return apierr.New(apierr.Unavailable, "no coordinator answers at %s", addr).WithNext("loopkeeper up", a.elsewhere())
	case status.Code(err) == codes.Unimplemented:
		return apierr.New(apierr.InvalidArgument, "%s is no coordinator: a worker, or another program, answers there", addr).WithNext(a.elsewhere())
	default:
		return apierr.FromStatus(err)
	}
}

// elsewhere is the command that was given, for a coordinator on another machine.
func (a *app) elsewhere() string {
	return a.commandWithout([]string{"--server="}, "--server", "HOST:"+defaultPort) + "  # with the machine on which loopkeeper up runs"
}

// defaultPort is where a coordinator listens when nothing else is said.
const defaultPort = "7700"

// serverAddress is where the coordinator listens: as told by flag or environment, else as the one of this data folder
// wrote down, else as configured.
func (a *app) serverAddress() string {
	if server := a.flags.server; server != "" {
		if _, _, err := net.SplitHostPort(server); err != nil {
			return net.JoinHostPort(strings.Trim(server, "[]"), defaultPort)
		}
		return server
	}
	if !strings.HasPrefix(a.origins["coordinator.listen"], "env ") || strings.HasSuffix(a.config.Coordinator.Listen, ":0") {
		if text, err := os.ReadFile(filepath.Join(a.config.DataDir, addressFile)); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	return a.config.Coordinator.Listen
}
