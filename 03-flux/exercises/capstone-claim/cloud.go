package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/workbook/03-flux/exercises/internal/databases"
	"example.com/workbook/shared/exercise/check"
	"example.com/workbook/shared/exercise/kube"
)

var (
	errDown    = errors.New("the cloud is down")
	errTimeout = errors.New("the cloud does not respond: timeout")
)

// record is a database that was created.
type record struct {
	databases.CloudDatabase
	deleted bool
}

// cloud has all databases that were ever created. Its first one is of another user of the account.
type cloud struct {
	b *check.B

	mu     sync.Mutex
	all    []*record
	tokens map[string]*record
	// requests are all so far, as in "delete db-1".
	requests []string
	// creating is set if new databases do not become available.
	creating bool
	down     bool
	// slow is how long it takes until a request takes effect.
	slow time.Duration
	// hold holds the first creation until it is closed, if it is set. held is set once it does.
	hold chan time.Time
	held bool
	// late is how many creations and deletions take effect, and time out then.
	late int
	// crash says at which requests a process crashes, and whether they take effect before.
	crash      func(number int, verb string) bool
	crashAfter bool
	crashed    bool
}

func newCloud(b *check.B) *cloud {
	other := &record{CloudDatabase: databases.CloudDatabase{ID: "db-of-another", Token: "another", Available: true}}
	return &cloud{b: b, all: []*record{other}, tokens: map[string]*record{"another": other}}
}

// set changes what the cloud does.
func (c *cloud) set(change func(*cloud)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func (c *cloud) isDown(down bool) {
	c.b.Event("the cloud is down: %t", down)
	c.set(func(c *cloud) { c.down = down })
}

// forget is what the cloud does with tokens after a day.
func (c *cloud) forget() {
	c.b.Event("a day passes: the cloud has forgotten all tokens")
	c.set(func(c *cloud) { c.tokens = map[string]*record{} })
}

// lose lets a database vanish.
func (c *cloud) lose(r *record) {
	c.b.Event("%s vanishes from the cloud", r.ID)
	c.set(func(*cloud) { r.deleted = true })
}

// counts are how many databases were created, and how many are there. That of the other user is not among them.
func (c *cloud) counts() (created, live int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[0].deleted {
		c.b.Errorf("a database of another user of the account was deleted")
	}
	for _, r := range c.all[1:] {
		created++
		if !r.deleted {
			live++
		}
	}
	return created, live
}

// expect checks both counts.
func (c *cloud) expect(created, live int) {
	gotCreated, gotLive := c.counts()
	switch {
	case gotCreated != created:
		c.b.Fatalf("in all %d databases were created in the cloud, and should be %d", gotCreated, created)
	case gotLive != live:
		c.b.Fatalf("%d databases are in the cloud, and should be %d", gotLive, live)
	}
}

// find returns the database with an ID, also if it was deleted, or nil.
func (c *cloud) find(id string) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID(id)
}

func (c *cloud) byID(id string) *record {
	if i := slices.IndexFunc(c.all, func(r *record) bool { return r.ID == id }); i >= 0 {
		return c.all[i]
	}
	return nil
}

// sent is how many requests have begun like this, with all if text is empty.
func (c *cloud) sent(text string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, request := range c.requests {
		if strings.HasPrefix(request, text) {
			n++
		}
	}
	return n
}

// session is the cloud as one process of the operator sees it.
type session struct {
	*cloud
	process *kube.Process
}

// send counts a request, and says what comes of it. The effect takes place while the cloud is locked.
func send[T any](ctx context.Context, s *session, verb, what string, effect func() (T, error)) (T, error) {
	var none T
	if s.process.Dead() || ctx.Err() != nil {
		return none, context.Canceled // a process that has crashed sends nothing
	}
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case <-s.arrives(verb):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, verb+" "+what)
	s.b.Event("  cloud: %s %s", verb, what)
	crash := !s.crashed && s.crash != nil && s.crash(len(s.requests), verb)
	switch {
	case crash && !s.crashAfter:
		s.crashed = true
		s.process.Crash()
		return none, context.Canceled
	case s.down:
		s.b.Event("    it fails: the cloud is down")
		return none, errDown
	}
	result, err := effect()
	switch {
	case crash:
		s.b.Event("    it takes effect")
		s.crashed = true
		s.process.Crash()
		return none, context.Canceled
	case s.late > 0 && (verb == "create" || verb == "delete"):
		s.b.Event("    it takes effect, and times out")
		s.late--
		return none, errTimeout
	case err != nil:
		s.b.Event("    it fails: %v", err)
	}
	return result, err
}

// arrives is closed, or sends, when a request reaches the cloud.
func (s *session) arrives(verb string) <-chan time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if verb != "create" || s.hold == nil || s.held {
		return time.After(s.slow)
	}
	s.held = true
	s.b.Event("  a creation is in flight")
	return s.hold
}

func (s *session) Create(ctx context.Context, token string, spec databases.CloudSpec) (databases.CloudDatabase, error) {
	return send(ctx, s, "create", spec.Engine, func() (databases.CloudDatabase, error) {
		if known := s.tokens[token]; known != nil {
			s.b.Event("    the cloud knows the token: it is that of %s", known.ID)
			if known.Spec != spec {
				return databases.CloudDatabase{}, databases.ErrMismatch
			}
			return s.view(known), nil
		}
		id := fmt.Sprintf("db-%d", len(s.all))
		created := &record{CloudDatabase: databases.CloudDatabase{ID: id, Token: token, Spec: spec, Endpoint: id + ".cloud.example.com:5432"}}
		s.b.Event("    %s is created", id)
		s.all = append(s.all, created)
		if token != "" {
			s.tokens[token] = created
		}
		return s.view(created), nil
	})
}

func (s *session) Get(ctx context.Context, id string) (databases.CloudDatabase, error) {
	return send(ctx, s, "get", id, func() (databases.CloudDatabase, error) {
		if found := s.byID(id); found != nil && !found.deleted {
			return s.view(found), nil
		}
		return databases.CloudDatabase{}, databases.ErrNotFound
	})
}

func (s *session) Delete(ctx context.Context, id string) error {
	_, err := send(ctx, s, "delete", id, func() (struct{}, error) {
		found := s.byID(id)
		if found == nil || found.deleted {
			return struct{}{}, databases.ErrNotFound
		}
		found.deleted = true
		return struct{}{}, nil
	})
	return err
}

func (s *session) List(ctx context.Context) ([]databases.CloudDatabase, error) {
	return send(ctx, s, "list", "all", func() ([]databases.CloudDatabase, error) {
		var found []databases.CloudDatabase
		for _, r := range s.all {
			if !r.deleted {
				found = append(found, s.view(r))
			}
		}
		return found, nil
	})
}

// view is what a response says of a database.
func (s *session) view(r *record) databases.CloudDatabase {
	view := r.CloudDatabase
	view.Available = !s.creating && !r.deleted
	return view
}
