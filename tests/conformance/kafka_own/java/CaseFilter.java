import org.apache.kafka.common.test.api.ClusterTest;
import org.apache.kafka.common.test.api.ClusterTestDefaults;
import org.apache.kafka.common.test.api.ClusterTests;
import org.apache.kafka.common.test.api.Type;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Leaves out cases of which "CLASS.METHOD SHOWN-NAME" has what -Dkavka.left.out=REGEX describes.
 *
 * A method that is written for nodes in one role and for nodes in both is played once: with the roles apart.
 */
public class CaseFilter implements ExecutionCondition {
    private static final String WRITTEN = System.getProperty("kavka.left.out", "");
    private static final Pattern LEFT_OUT = WRITTEN.isEmpty() ? null : Pattern.compile(WRITTEN);
    private static final String IS_COMBINED = "Type=Raft-Combined";

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        if (context.getTestMethod().isEmpty()) return ConditionEvaluationResult.enabled("");
        Method method = context.getTestMethod().get();
        String type = context.getRequiredTestClass().getSimpleName();
        String name = type + "." + method.getName() + " " + context.getDisplayName();
        boolean isLeftOut = LEFT_OUT != null && LEFT_OUT.matcher(name).find();
        boolean isRepeated = name.contains(IS_COMBINED) && isPlayedApart(method);
        return isLeftOut || isRepeated
            ? ConditionEvaluationResult.disabled("left out by the allow list")
            : ConditionEvaluationResult.enabled("");
    }

    /** Whether the method is written for nodes in one role as well. */
    private static boolean isPlayedApart(Method method) {
        ClusterTests several = method.getAnnotation(ClusterTests.class);
        ClusterTest one = method.getAnnotation(ClusterTest.class);
        List<ClusterTest> tests = several != null ? List.of(several.value()) : one != null ? List.of(one) : List.of();
        return tests.isEmpty() || tests.stream().anyMatch(test -> isApart(typesOf(test, method.getDeclaringClass())));
    }

    private static Type[] typesOf(ClusterTest test, Class<?> declaring) {
        if (test.types().length > 0) return test.types();
        ClusterTestDefaults defaults = declaring.getAnnotation(ClusterTestDefaults.class);
        return defaults == null ? new Type[0] : defaults.types();
    }

    private static boolean isApart(Type[] types) {
        return types.length == 0 || Arrays.stream(types).anyMatch(type -> type != Type.CO_KRAFT);
    }
}
