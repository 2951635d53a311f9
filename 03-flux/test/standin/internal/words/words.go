// Package words lets errors speak as a Flux broker's do, which begin with a capital where the C library does.
package words

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Error is an error in a broker's words.
type Error string

func (e Error) Error() string { return string(e) }

// Errorf makes an error in a broker's words.
func Errorf(format string, args ...any) error { return Error(fmt.Sprintf(format, args...)) }

// System returns what the C library would say of an error of the system: "Permission denied", without the call and
// the file that Go names.
func System(err error) error {
	if number, isNumber := errors.AsType[syscall.Errno](err); isNumber {
		text := number.Error()
		return Error(strings.ToUpper(text[:1]) + text[1:])
	}
	return err
}

// Signal is what the C library calls a signal: "Segmentation fault".
func Signal(s syscall.Signal) string {
	text := s.String()
	return strings.ToUpper(text[:1]) + text[1:]
}
