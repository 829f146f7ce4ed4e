// Package coordinatorv1 is the contract between the coordinator and its users, generated from coordinator.proto.
package coordinatorv1
