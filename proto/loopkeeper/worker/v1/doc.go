// Package workerv1 is the contract between the coordinator and a worker, generated from worker.proto.
package workerv1
