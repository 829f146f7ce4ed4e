// Package identity is who a machine of a fleet is and how the other side checks it: a key and a certificate on disk, and
// mutual TLS 1.3 that is verified by hand against the one authority of the fleet. Both sides use it.
package identity
