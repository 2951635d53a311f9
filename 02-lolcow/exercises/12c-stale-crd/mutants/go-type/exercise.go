package stalecrd

import (
	"context"
	"errors"
	"reflect"

	"k8s.io/client-go/rest"

	"example.com/workbook/02-lolcow/api/v1alpha1"
)

// CheckSchema returns an error if the API server does not serve Lolcows with a port.
func CheckSchema(context.Context, *rest.Config) error {
	if _, found := reflect.TypeFor[v1alpha1.LolcowSpec]().FieldByName("Port"); !found {
		return errors.New("the CRD of Lolcow has no port")
	}
	return nil
}
