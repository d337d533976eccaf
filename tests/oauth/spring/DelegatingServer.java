import java.util.ArrayList;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.security.oauth2.core.AuthorizationGrantType;
import org.springframework.security.oauth2.core.ClientAuthenticationMethod;
import org.springframework.security.oauth2.server.authorization.authentication.OAuth2TokenExchangeAuthenticationToken;
import org.springframework.security.oauth2.server.authorization.client.InMemoryRegisteredClientRepository;
import org.springframework.security.oauth2.server.authorization.client.RegisteredClient;
import org.springframework.security.oauth2.server.authorization.client.RegisteredClientRepository;
import org.springframework.security.oauth2.server.authorization.settings.ClientSettings;
import org.springframework.security.oauth2.server.authorization.token.JwtEncodingContext;
import org.springframework.security.oauth2.server.authorization.token.OAuth2TokenCustomizer;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;

/** A Spring Authorization Server with the user ann, an app in which she signs in, and a client that exchanges tokens. */
@Configuration
@EnableAutoConfiguration
public class DelegatingServer {
    public static void main(String[] arguments) {
        SpringApplication.run(DelegatingServer.class, arguments);
    }

    @Bean
    RegisteredClientRepository clients() {
        RegisteredClient app = RegisteredClient.withId("app")
            .clientId("app")
            .clientAuthenticationMethod(ClientAuthenticationMethod.NONE)
            .authorizationGrantType(AuthorizationGrantType.AUTHORIZATION_CODE)
            .redirectUri("http://app.example/back")
            .scope("orders")
            .clientSettings(ClientSettings.builder().requireProofKey(true).requireAuthorizationConsent(false).build())
            .build();
        RegisteredClient gateway = RegisteredClient.withId("holdfast")
            .clientId("holdfast")
            .clientSecret("{noop}s3cret")
            .clientAuthenticationMethod(ClientAuthenticationMethod.CLIENT_SECRET_BASIC)
            .authorizationGrantType(AuthorizationGrantType.CLIENT_CREDENTIALS)
            .authorizationGrantType(AuthorizationGrantType.TOKEN_EXCHANGE)
            .scope("orders")
            .build();
        return new InMemoryRegisteredClientRepository(app, gateway);
    }

    @Bean
    UserDetailsService users() {
        return new InMemoryUserDetailsManager(
            User.withUsername("ann").password("{noop}open sesame").roles("USER").build());
    }

    /** Issues exchanged tokens for the audiences that were asked for. */
    @Bean
    OAuth2TokenCustomizer<JwtEncodingContext> audience() {
        return context -> {
            if (context.getAuthorizationGrant() instanceof OAuth2TokenExchangeAuthenticationToken exchange) {
                context.getClaims().audience(new ArrayList<>(exchange.getAudiences()));
            }
        };
    }
}
