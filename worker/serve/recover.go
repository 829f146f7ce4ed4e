package serve

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls"
)

// contained runs an attempt so that a fault of ours ends that attempt alone, as a typed failure: the worker serves many
// others. failed makes the failure a response of the right kind.
func contained(log *slog.Logger, key string, run runFunc, failed func(*workerv1.Failure) proto.Message) runFunc {
	return func(ctx context.Context, progress func(*workerv1.Progress)) (response proto.Message) {
		defer func() {
			if fault := recover(); fault != nil {
				log.Error("a call failed by a fault of loopkeeper", "key", key, "fault", fault, "stack", string(debug.Stack()))
				response = failed(internalFailure(fmt.Sprint(fault)))
			}
		}()
		return run(ctx, progress)
	}
}

// internalFailure is a fault of this program and not of the model; elsewhere, or in another release, it may not happen.
func internalFailure(what string) *workerv1.Failure {
	return &workerv1.Failure{Kind: string(calls.ServerError), Message: "internal fault of the worker: " + what, Advice: advice(calls.ServerError.Advice()),
		Next: []string{"see the worker's log, and report the fault"}}
}

// failedResponse is the response to r that says why there is nothing else in it.
func failedResponse(r proto.Message) func(*workerv1.Failure) proto.Message {
	return func(f *workerv1.Failure) proto.Message {
		out := &workerv1.Outcome{Failure: f}
		switch r.(type) {
		case *workerv1.PlanRequest:
			return &workerv1.PlanResponse{Outcome: out}
		case *workerv1.EvaluateRequest:
			return &workerv1.EvaluateResponse{Outcome: out}
		case *workerv1.EmbedRequest:
			return &workerv1.EmbedResponse{Outcome: out}
		default:
			return out
		}
	}
}

// Recovery returns the server options that turn a panic of any other handler into an Internal error and a line in the log.
func Recovery(log *slog.Logger) []grpc.ServerOption {
	end := func(method string, err *error) {
		if fault := recover(); fault != nil {
			log.Error("a request failed by a fault of loopkeeper", "method", method, "fault", fault, "stack", string(debug.Stack()))
			*err = apierr.ToStatus(apierr.New(apierr.Internal, "internal fault of the worker: %v", fault))
		}
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, r any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
			defer end(info.FullMethod, &err)
			return next(ctx, r)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
			defer end(info.FullMethod, &err)
			return next(srv, stream)
		}),
	}
}
