// Package enrolv1 is the contract by which a machine joins a fleet, generated from enrol.proto.
package enrolv1
